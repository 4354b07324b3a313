//! Query plans, and whether they are within the limits.

use anyhow::{Context, Result};
use serde_json::Value;

use super::case::{Case, Limits};
use super::database::Database;

/// Tables that grow with the number of tokens.
const LARGE: [&str; 2] = ["token", "term"];

/// Both kinds of plan of a prepared statement.
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

/// An executed plan.
pub(super) struct Plan {
    nodes: Vec<Node>,
    pub(super) buffers: u64,
    pub(super) milliseconds: f64,
}

struct Node {
    kind: String,
    table: Option<String>,
    index: Option<String>,
    /// Rows returned by all loops, plus rows removed by filters.
    rows: u64,
    /// Rows returned by the child nodes.
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
    // Run once before, to warm the cache.
    let explained = format!("explain (analyze, buffers, format json) {sql}");
    database.first_row(&explained).await?;
    database.run("rollback; begin").await?;
    let row = database.first_row(&explained).await?.unwrap_or_default();
    if shows_plans {
        let text = format!("explain (analyze, buffers, costs off) {sql}");
        println!("\n{sql}");
        for line in database.rows(&text).await? {
            println!("{}", line.join(" "));
        }
    }
    database.run("rollback").await?;
    let text = row.first().context("a plan is one column")?;
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

    /// Scans, sorts and joins, from the top.
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

    /// Rows read from the large tables.
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

/// Rows of all loops; PostgreSQL reports the mean per loop.
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
    /// Violated limits.
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
        let describe = |what: String| format!("{statement} ({name}, {mode} plan) {what}");
        found.into_iter().map(describe).collect()
    }
}

#[cfg(test)]
mod tests;
