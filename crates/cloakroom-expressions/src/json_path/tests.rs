//! Tests of paths, errors and their cost.

use serde_json::json;

use super::*;
use crate::EvaluationError;

fn find(path: &str) -> Option<Vec<Value>> {
    let document = json!({
        "request": { "headers": { "X-User-Id": "u", "a.b": 1 } },
        "items": [{ "x": 1, "n": "a" }, { "x": 20 }, { "x": 3, "n": "b" }],
        "o": { "b": 1, "deep": { "b": 2 } },
        "limit": 10,
    });
    let path = JsonPath::parse(path)?;
    let found = path.find(&document, &|| Ok(())).unwrap();
    Some(found.into_iter().cloned().collect())
}

#[test]
fn section_4_paths_select_their_values() {
    let cases = [
        ("$.o.b", vec![json!(1)]),
        ("$.request.headers.X-User-Id", vec![json!("u")]),
        ("$['o']['b']", vec![json!(1)]),
        ("$[\"o\"].b", vec![json!(1)]),
        ("$.request.headers['a.b']", vec![json!(1)]),
        ("$.items[0].x", vec![json!(1)]),
        ("$.items[-1].x", vec![json!(3)]),
        ("$.items[-1:].x", vec![json!(3)]),
        ("$.items[:2].x", vec![json!(1), json!(20)]),
        ("$.items[1:].x", vec![json!(20), json!(3)]),
        ("$.items[::2].x", vec![json!(1), json!(3)]),
        ("$.items[::-1].x", vec![json!(3), json!(20), json!(1)]),
        ("$.items[0,2].x", vec![json!(1), json!(3)]),
        ("$.o['b','deep'].b", vec![json!(2)]),
        ("$.items.*.x", vec![json!(1), json!(20), json!(3)]),
        ("$.items[*].n", vec![json!("a"), json!("b")]),
        ("$..b", vec![json!(1), json!(2)]),
        ("$..['n']", vec![json!("a"), json!("b")]),
        ("$.items[?(@.x < 10)].x", vec![json!(1), json!(3)]),
        ("$.items[?(@.x < 3)].x", vec![json!(1)]),
        ("$.items[?(@.x <= 3)].x", vec![json!(1), json!(3)]),
        ("$.items[?(@.x > 3)].x", vec![json!(20)]),
        ("$.items[?(@.x >= 3)].x", vec![json!(20), json!(3)]),
        ("$.items[?(@.x<10 && @.n=='b')].x", vec![json!(3)]),
        (
            "$.items[?(@.x > 10 || @.n == \"b\")].x",
            vec![json!(20), json!(3)],
        ),
        ("$.items[?(@.n)].x", vec![json!(1), json!(3)]),
        ("$.items[?(!@.n)].x", vec![json!(20)]),
        ("$.items[?(@.x >= $.limit)].x", vec![json!(20)]),
        ("$.items[?@.x != 1].x", vec![json!(20), json!(3)]),
        (
            "$.items[?((@.x == 1 || @.x == 3) && @.n == 'a')].x",
            vec![json!(1)],
        ),
        ("$.missing", vec![]),
        ("$.items[9]", vec![]),
        ("$.o[0]", vec![]),
        ("$.limit.x", vec![]),
    ];
    for (path, expected) in cases {
        assert_eq!(find(path), Some(expected), "{path}");
    }
}

#[test]
fn malformed_paths_are_rejected() {
    let nested = format!("$[?({}@{})]", "(".repeat(100), ")".repeat(100));
    let broken = [
        "",
        "data",
        "$.",
        "$..",
        "$[",
        "$[]",
        "$['a]",
        "$[a]",
        "$.a b",
        "$[?()]",
        "$[?(@.x <)]",
        "$[1:2:0]",
        "$[(@.length-1)]",
        "$[?(@.x < 10]",
        "$[99999999999999999999]",
        &nested,
    ];
    for path in broken {
        assert_eq!(JsonPath::parse(path), None, "{path}");
    }
}

#[test]
fn every_visit_is_charged() {
    let document = (0..16).fold(json!(1), |inner, _| json!([inner, inner]));
    let path = JsonPath::parse("$..*..*..*").unwrap();
    let visits = std::cell::Cell::new(0);
    let charge_visit = || {
        visits.set(visits.get() + 1);
        match visits.get() > 1000 {
            true => Err(EvaluationError::TooMuchWork),
            false => Ok(()),
        }
    };

    assert_eq!(
        path.find(&document, &charge_visit),
        Err(EvaluationError::TooMuchWork)
    );
}
