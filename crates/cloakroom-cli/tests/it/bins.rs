//! `cloakroom bins`: output of the command, and card details on a running node.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Deployment, outcome};

/// The example in the documentation, so that it keeps working.
fn documented_example() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/bins.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, rest) = text.split_once("```csv\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_documented_example_changes_card_details_on_a_running_node() {
    let rule = "/ reveal token:create,token:read";
    let (deployment, keys) = Deployment::with_keys(&[rule]);
    let file = deployment.path("bins.csv");
    std::fs::write(&file, documented_example()).unwrap();
    let file = file.display().to_string();
    let node = deployment.serve();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = reqwest::Client::new();
    let card_details = || -> Value {
        let request = client
            .post(format!("{}/tokens", node.base_url))
            .header("bt-api-key", &keys[0])
            .json(&json!({"type": "card", "data": {"number": "4970101111111112"}}));
        let response = async { request.send().await.unwrap().json::<Value>().await.unwrap() };
        runtime.block_on(response)["card"].clone()
    };

    let no_table = deployment.run_ok(&["bins", "status"]);
    let before = card_details();
    let imported = deployment.run_ok(&["bins", "import", &file]);
    let since = Instant::now();
    while card_details()["funding"] != "debit" {
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "{}",
            card_details()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    let status = deployment.run_ok(&["bins", "status"]);
    let show = |arguments: &[&str]| deployment.run_ok(&[&["bins", "show"], arguments].concat());

    assert!(no_table.contains("no table was imported"), "{no_table}");
    assert_eq!(before["funding"], Value::Null);
    assert!(
        imported.contains("rows of bins.csv as version 1"),
        "{imported}"
    );
    assert_eq!(card_details()["additional"][0]["brand"], "cartes-bancaires");
    for line in [
        "version      1\n",
        "rows         4\n",
        "source       bins.csv\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let cases: [(&[&str], &str); 4] = [
        (&["497010"], "source: the imported table, version 1"),
        (&["411111"], "source: the first digits alone"),
        (&["4242424242424242"], "source: the first digits alone"),
        (
            &["4242424242424242", "--tenant-type", "test"],
            "source: the published test numbers",
        ),
    ];
    for (arguments, expected) in cases {
        let shown = show(arguments);
        assert!(shown.starts_with(expected), "{shown}");
        assert!(!shown.contains("4242424242424242"), "{shown}");
    }
}

#[test]
fn an_invalid_file_is_explained_and_changes_nothing() {
    let (deployment, _) = Deployment::with_keys(&[]);
    let import = |name: &str, text: &str, more: &[&str]| {
        let file = deployment.path(name);
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        outcome(deployment.command(&[&["bins", "import", &file], more].concat()))
    };
    let good = import("good.txt", "low\n400000\n", &["--format", "csv"]);
    assert!(good.success, "{}", good.stderr);

    let cases = [
        (
            import("bad.csv", "low,funding\n400000,debit\n400001,wealth\n", &[]),
            "bad.csv: row 2, column funding: must be credit, debit or prepaid",
        ),
        (
            import("bad.csv", "low,high\n400000,400005\n400003,400009\n", &[]),
            "neither lies inside the other (row 1)",
        ),
        (
            import("bad.txt", "low\n", &[]),
            "say --format csv, json or parquet",
        ),
        (import("bad.parquet", "low\n", &[]), "it is not Parquet"),
        (
            deployment.run(&["bins", "import", "absent.csv"]),
            "cannot be read: entity not found",
        ),
        (deployment.run(&["bins", "show", "41111"]), "a BIN 6 to 11"),
    ];
    for (outcome, expected) in cases {
        assert!(!outcome.success, "{expected}");
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("wealth"), "{}", outcome.stderr);
    }
    let status = deployment.run_ok(&["bins", "status"]);
    assert!(status.contains("good.txt"), "{status}");
}
