//! Plans: what PostgreSQL does for a statement, and whether it may.

use anyhow::{Context, Result};
use serde_json::Value;

use super::case::{Case, Limits};
use super::database::Database;

/// The tables that grow with the tokens.
const LARGE: [&str; 2] = ["token", "term"];

/// Both kinds of plan that a prepared statement can get.
const MODES: [(&str, &str); 2] = [
    ("generic", "force_generic_plan"),
    ("custom", "force_custom_plan"),
];

/// One case under one kind of plan.
pub(super) struct Tried {
    pub(super) statement: &'static str,
    pub(super) name: &'static str,
    pub(super) mode: &'static str,
    limits: Limits,
    pub(super) plan: Plan,
}

/// What a plan did when it ran.
pub(super) struct Plan {
    nodes: Vec<Node>,
    pub(super) buffers: u64,
    pub(super) milliseconds: f64,
}

struct Node {
    kind: String,
    table: Option<String>,
    index: Option<String>,
    /// Rows that came out of it, of all its runs, and those that it filtered out.
    rows: u64,
    /// Rows that came out of the nodes below.
    rows_below: u64,
}

/// Runs every case under both kinds of plan; changes are rolled back.
pub(super) async fn try_all(
    database: &Database,
    cases: &[Case],
    shows_plans: bool,
) -> Result<Vec<Tried>> {
    let mut tried = Vec::new();
    for (mode, setting) in MODES {
        database
            .run(&format!("set plan_cache_mode = {setting}"))
            .await?;
        for case in cases {
            let plan = explain(database, &case.sql(), shows_plans).await?;
            tried.push(Tried {
                statement: case.statement,
                name: case.name,
                mode,
                limits: case.limits,
                plan,
            });
        }
    }
    database.run("reset plan_cache_mode").await?;
    tried.sort_by_key(|tried| tried.statement);
    Ok(tried)
}

async fn explain(database: &Database, sql: &str, shows_plans: bool) -> Result<Plan> {
    database.run("begin").await?;
    // Once before, so that what is read is in memory.
    let explained = format!("explain (analyze, buffers, format json) {sql}");
    database.ask(&explained).await?;
    database.run("rollback; begin").await?;
    let answer = database.ask(&explained).await?.unwrap_or_default();
    if shows_plans {
        let text = format!("explain (analyze, buffers, costs off) {sql}");
        println!("\n{sql}");
        for row in database.rows(&text).await? {
            println!("{}", row.join(" "));
        }
    }
    database.run("rollback").await?;
    let text = answer.first().context("a plan is one column")?;
    Plan::read(text)
}

impl Plan {
    fn read(text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        let top = &json[0]["Plan"];
        let mut nodes = Vec::new();
        collect(top, &mut nodes);
        let blocks = |name: &str| top[name].as_u64().unwrap_or_default();
        Ok(Self {
            nodes,
            buffers: blocks("Shared Hit Blocks") + blocks("Shared Read Blocks"),
            milliseconds: json[0]["Execution Time"].as_f64().unwrap_or_default(),
        })
    }

    /// What is read and how it is put together, from the top.
    pub(super) fn describe(&self) -> String {
        let is_telling = |node: &&Node| {
            !matches!(
                node.kind.as_str(),
                "Limit" | "Nested Loop" | "Function Scan" | "Result"
            )
        };
        let describe = |node: &Node| match (&node.index, &node.table) {
            (Some(name), _) | (None, Some(name)) => format!("{} {name}", node.kind),
            (None, None) => node.kind.clone(),
        };
        let parts: Vec<String> = self.nodes.iter().filter(is_telling).map(describe).collect();
        parts.join(", ")
    }

    /// Rows of the large tables that were looked at.
    pub(super) fn rows_read(&self) -> u64 {
        let is_large = |node: &&Node| {
            let table = node.table.as_deref();
            node.kind.contains("Scan") && table.is_some_and(|table| LARGE.contains(&table))
        };
        self.nodes
            .iter()
            .filter(is_large)
            .map(|node| node.rows)
            .sum()
    }
}

fn collect(plan: &Value, nodes: &mut Vec<Node>) {
    let text = |name: &str| plan[name].as_str().map(str::to_owned);
    let below = plan["Plans"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let direction = match plan["Scan Direction"].as_str() {
        Some("Backward") => " Backward",
        _ => "",
    };
    nodes.push(Node {
        kind: format!("{}{direction}", text("Node Type").unwrap_or_default()),
        table: text("Relation Name"),
        index: text("Index Name"),
        rows: rows(plan),
        rows_below: below.iter().map(rows).sum(),
    });
    for plan in below {
        collect(plan, nodes);
    }
}

/// Rows of all runs; PostgreSQL tells the mean of a run.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of rows are small and not negative"
)]
fn rows(plan: &Value) -> u64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or_default();
    let of_one = number("Actual Rows") + number("Rows Removed by Filter");
    (of_one * number("Actual Loops")).round() as u64
}

impl Tried {
    /// What the plan does and must not.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        for node in &self.plan.nodes {
            let table = node.table.as_deref().unwrap_or_default();
            if node.kind.starts_with("Seq Scan") && LARGE.contains(&table) {
                found.push(format!("reads all of {table}"));
            }
            let sorts = node.kind.contains("Sort") || node.kind.contains("Aggregate");
            if sorts && node.rows_below > self.limits.sorted_rows_max {
                found.push(format!("sorts {} rows", node.rows_below));
            }
            let is_parallel = node.kind.starts_with("Gather");
            if is_parallel && self.limits.read_rows_max < u64::MAX {
                found.push("starts parallel workers".to_owned());
            }
        }
        let read = self.plan.rows_read();
        if read > self.limits.read_rows_max {
            found.push(format!("reads {read} rows"));
        }
        let Self {
            statement,
            name,
            mode,
            ..
        } = self;
        let tell = |what: String| format!("{statement} ({name}, {mode} plan) {what}");
        found.into_iter().map(tell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scan(kind: &str, rows: f64, loops: f64) -> Value {
        json!({"Node Type": kind, "Relation Name": "token", "Index Name": "token_by_path",
            "Scan Direction": "Backward", "Actual Rows": rows, "Actual Loops": loops,
            "Rows Removed by Filter": 1})
    }

    fn tried(plan: &Value, limits: Limits) -> Tried {
        let text = json!([{"Plan": plan, "Execution Time": 0.5}]).to_string();
        Tried {
            statement: "room::statement",
            name: "a case",
            mode: "generic",
            limits,
            plan: Plan::read(&text).unwrap(),
        }
    }

    #[test]
    fn plans_that_read_or_sort_too_much_are_complained_about() {
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
            let prefix = "room::statement (a case, generic plan) ";
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
}
