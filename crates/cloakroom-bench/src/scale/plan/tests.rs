//! Tests with plans of PostgreSQL.

use serde_json::json;

use super::*;

fn scan(kind: &str, rows: f64, loops: f64) -> Value {
    json!({"Node Type": kind, "Relation Name": "token", "Index Name": "token_by_path",
        "Scan Direction": "Backward", "Actual Rows": rows, "Actual Loops": loops,
        "Rows Removed by Filter": 1})
}

fn tried(plan: &Value, limits: Limits) -> Tried {
    let text = json!([{"Plan": plan, "Execution Time": 0.5}]).to_string();
    Tried {
        statement: "module::statement",
        name: "a case",
        mode: "generic",
        limits,
        plan: Plan::read(&text).unwrap(),
    }
}

#[test]
fn plans_that_read_or_sort_too_much_are_reported() {
    let limits = Limits {
        sorted_rows_max: 30,
        read_rows_max: 30,
    };
    let above = |kind: &str, below: Value| json!({"Node Type": kind, "Actual Rows": 1, "Actual Loops": 1, "Plans": [below]});
    let cases = [
        (above("Limit", scan("Index Scan", 9.0, 3.0)), ""),
        (above("Sort", scan("Index Scan", 9.0, 3.0)), ""),
        (
            above("Sort", scan("Index Scan", 19.0, 2.0)),
            "sorts 40 rows, reads 40 rows",
        ),
        (
            above("Gather Merge", scan("Index Scan", 1.0, 1.0)),
            "starts parallel workers",
        ),
        (
            above("Limit", scan("Seq Scan", 1.0, 1.0)),
            "reads all of token",
        ),
    ];
    for (plan, expected) in cases {
        let complaints = tried(&plan, limits).complaints();
        let prefix = "module::statement (a case, generic plan) ";
        let complaints: Vec<&str> = complaints
            .iter()
            .map(|complaint| complaint.strip_prefix(prefix).unwrap())
            .collect();
        assert_eq!(complaints.join(", "), expected, "{plan}");
    }
}

#[test]
fn a_plan_is_described_by_what_it_reads() {
    let plan = json!({"Node Type": "Limit", "Plans": [scan("Index Scan", 2.0, 1.0)],
        "Shared Hit Blocks": 3, "Shared Read Blocks": 4});
    let limits = Limits {
        sorted_rows_max: 0,
        read_rows_max: 9,
    };

    let plan = tried(&plan, limits).plan;

    assert_eq!(plan.describe(), "Index Scan Backward token_by_path");
    assert_eq!((plan.buffers, plan.rows_read()), (7, 3));
}
