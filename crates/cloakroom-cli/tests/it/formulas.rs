//! `cloakroom formulas`, which needs neither a database nor a configuration.

use serde_json::Value;

use crate::support::{Outcome, cloakroom, outcome};

fn source() -> Vec<Value> {
    let text = include_str!("../../../cloakroom-formulas/tests/source.json");
    serde_json::from_str(text).unwrap()
}

fn run(arguments: &[&str]) -> Outcome {
    outcome(cloakroom(&[&["formulas"], arguments].concat()))
}

fn run_ok(arguments: &[&str]) -> String {
    let outcome = run(arguments);
    assert!(outcome.success, "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// The first word of each row.
fn ids(table: &str) -> Vec<&str> {
    let rows = table.lines().skip(1);
    rows.filter_map(|row| row.split_whitespace().next())
        .collect()
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn all_formulas_are_listed_with_counts_and_unsupported_features() {
    let table = run_ok(&["list"]);
    let known = source();
    let known: Vec<&str> = known.iter().map(|it| it["id"].as_str().unwrap()).collect();

    assert_eq!(ids(&table), known);
    let rows: Vec<String> = table.lines().map(words).collect();
    for row in [
        "id name currencies countries does not support",
        "adyen-card Adyen 135 150",
        "ebanx-card EBANX 10 4 three_d_secure_pass_through delayed_capture partial_capture",
        "worldpayvap-card Worldpay (VAP) 153 2",
    ] {
        assert!(rows.iter().any(|line| line == row), "{row} in {table}");
    }
}

#[test]
fn filters_match_those_of_the_api() {
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &[
                "--currency",
                "inr",
                "--country",
                "IN",
                "--id",
                "razorpay-card",
            ],
            &["razorpay-card"],
        ),
        (
            &["--id", "stripe-card", "--id", "adyen-card"],
            &["adyen-card", "stripe-card"],
        ),
        (
            &[
                "--country",
                "us",
                "--country",
                "ca",
                "--currency",
                "BGN",
                "--method",
                "card",
                "--id",
                "worldpayvap-card",
                "--id",
                "usaepay-card",
            ],
            &["worldpayvap-card"],
        ),
        (
            &[
                "--feature",
                "partial_capture",
                "--feature",
                "zero_auth",
                "--id",
                "razorpay-card",
                "--id",
                "ebanx-card",
                "--id",
                "usaepay-card",
            ],
            &["usaepay-card"],
        ),
        (&["--id", "unknown"], &[]),
        (&["--currency", "XTS"], &[]),
    ];
    for (arguments, expected) in cases {
        let listed = run_ok(&[&["list"], arguments].concat());
        let json = run_ok(&[&["list", "--json"], arguments].concat());
        let json: Vec<Value> = serde_json::from_str(&json).unwrap();
        let in_json: Vec<&str> = json.iter().map(|it| it["id"].as_str().unwrap()).collect();

        assert_eq!(in_json, expected, "{arguments:?}");
        match expected.is_empty() {
            true => assert_eq!(listed, "no matching formulas\n"),
            false => assert_eq!(ids(&listed), expected, "{arguments:?}"),
        }
    }
}

#[test]
fn invalid_values_are_rejected_with_their_option() {
    for (option, value, rule) in [
        ("--currency", "EURO", "must be three letters"),
        ("--country", "D", "must be two letters"),
        (
            "--feature",
            "voidAllowed",
            "must be three_d_secure_pass_through or",
        ),
        ("--method", "bank", "must be card"),
    ] {
        let rejected = run(&["list", option, value]);
        assert!(!rejected.success, "{option}");
        assert!(rejected.stderr.contains(rule), "{}", rejected.stderr);
        assert!(rejected.stderr.contains(option), "{}", rejected.stderr);
    }
}

#[test]
fn json_output_equals_the_api() {
    let all: Vec<Value> = serde_json::from_str(&run_ok(&["list", "--json"])).unwrap();
    assert_eq!(all, source());
    for formula in source() {
        let id = formula["id"].as_str().unwrap();
        let shown: Value = serde_json::from_str(&run_ok(&["show", id, "--json"])).unwrap();
        assert_eq!(shown, formula);
    }
}

#[test]
fn a_formula_is_shown_completely_within_a_hundred_columns() {
    for formula in source() {
        let id = formula["id"].as_str().unwrap();
        let shown = run_ok(&["show", id]);

        let longest = shown.lines().map(|line| line.chars().count()).max();
        assert!(longest.unwrap() <= 100, "{longest:?}: {shown}");
        let all: Vec<&str> = shown.split_whitespace().collect();
        for name in ["supported_currencies", "supported_countries"] {
            let codes = formula[name].as_array().unwrap();
            let is_listed = |code: &&Value| all.contains(&code.as_str().unwrap());
            assert_eq!(
                codes.iter().filter(is_listed).count(),
                codes.len(),
                "{id} {name}"
            );
        }
        for field in formula["fields"].as_array().unwrap() {
            let is_about = |line: &&str| line.split_whitespace().next() == field["key"].as_str();
            let row = words(shown.lines().find(is_about).unwrap());
            let required = if field["required"] == true {
                "required"
            } else {
                "optional"
            };
            let secret = if field["secret"] == true {
                " secret"
            } else {
                ""
            };
            let marks = format!("{required}{secret} text");
            assert!(row.ends_with(&marks), "{row}: {marks}");
            assert!(
                row.contains(field["display_name"].as_str().unwrap()),
                "{row}"
            );
        }
    }
}

#[test]
fn similar_ids_are_suggested_for_an_unknown_id() {
    for (id, suggestion) in [
        ("stripe", "did you mean stripe-card"),
        ("Stripe-Card", "did you mean stripe-card"),
        ("strpie-card", "did you mean stripe-card"),
        ("checkout", "did you mean checkoutcom-card"),
        ("authorize.net", "did you mean authorizenet-card"),
        ("???", "`cloakroom formulas list` lists all formulas"),
    ] {
        let rejected = run(&["show", id]);
        assert!(!rejected.success, "{id}");
        let expected = format!("cloakroom: formula {id} not found; {suggestion}");
        assert!(
            rejected.stderr.starts_with(&expected),
            "{}",
            rejected.stderr
        );
    }
}
