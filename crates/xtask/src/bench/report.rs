//! The results: as a table for people, as JSON for programs.

use anyhow::{Context, Result, ensure};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use serde_json::{Map, Value};

use super::load::{Operation, Outcome};
use super::pair::Pair;
use crate::plot::{Chart, Group};

/// One operation at one number of connections.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) operation: Operation,
    pub(super) connections: u32,
    pub(super) requests_per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) server_cpu_us: f64,
    pub(super) engine_per_s: f64,
    pub(super) ratio: f64,
}

impl Row {
    pub(super) fn new(
        operation: Operation,
        connections: u32,
        outcome: &Outcome,
        engine_per_s: f64,
    ) -> Self {
        let requests_per_s = outcome.requests_per_s();
        Self {
            operation,
            connections,
            requests_per_s,
            p50_ms: outcome.p50_us / 1e3,
            p99_ms: outcome.p99_us / 1e3,
            server_cpu_us: outcome.cpu_us_per_request(),
            engine_per_s,
            ratio: requests_per_s / engine_per_s,
        }
    }
}

/// A table that a terminal and a Markdown page show alike.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "operation",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "server CPU µs",
        "engine/s",
        "ratio",
    ]);
    for row in rows {
        table.add_row([
            row.operation.name().to_owned(),
            row.connections.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.2}", row.p50_ms),
            format!("{:.2}", row.p99_ms),
            format!("{:.0}", row.server_cpu_us),
            format!("{:.0}", row.engine_per_s),
            format!("{:.2}", row.ratio),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The same requests to a node with something and to one without it.
pub(super) struct Compared {
    pub(super) operation: Operation,
    pub(super) connections: u32,
    pub(super) with_per_s: f64,
    pub(super) without_per_s: f64,
}

/// What something costs: how many requests a node serves, of those that it serves without.
pub(super) fn compared(pair: &Pair, measured: &[Compared]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        pair.title,
        "connections",
        &format!("{}/s", pair.names.0),
        &format!("{}/s", pair.names.1),
        "ratio",
    ]);
    for row in measured {
        table.add_row([
            row.operation.name().to_owned(),
            row.connections.to_string(),
            format!("{:.0}", row.with_per_s),
            format!("{:.0}", row.without_per_s),
            format!("{:.2}", row.with_per_s / row.without_per_s),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A group per operation, a bar per number of connections.
pub(super) fn chart(rows: &[Row]) -> Chart {
    let groups: Vec<&[Row]> = rows.chunk_by(|a, b| a.operation == b.operation).collect();
    let label = |row: &Row| match row.connections {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    };
    Chart {
        title: "Requests per second of one node, relative to the bare engine",
        heading: "Requests per second, relative to the bare engine",
        reference: "bare engine".to_owned(),
        series: groups
            .first()
            .map_or_else(Vec::new, |first| first.iter().map(label).collect()),
        groups: groups
            .iter()
            .map(|group| Group {
                name: group[0].operation.name().to_owned(),
                ratios: group.iter().map(|row| row.ratio).collect(),
            })
            .collect(),
        width: 760.0,
    }
}

pub(super) fn json(rows: &[Row]) -> Result<String> {
    let mut text = serde_json::to_string_pretty(rows)?;
    text.push('\n');
    Ok(text)
}

/// Makes sure that the JSON says something about every measurement.
pub(super) fn check(json: &str, rows: usize) -> Result<()> {
    let list: Vec<Map<String, Value>> = serde_json::from_str(json)?;
    ensure!(list.len() == rows, "{rows} results, {} in JSON", list.len());
    for object in &list {
        let operation = object.get("operation").and_then(Value::as_str);
        ensure!(operation.is_some(), "a result without its operation");
        for name in NUMBERS {
            let number = object.get(name).and_then(Value::as_f64);
            let number = number.with_context(|| format!("{name} is no number: {object:?}"))?;
            ensure!(number > 0.0, "{name} is {number}: {object:?}");
        }
        ensure!(object.len() == NUMBERS.len() + 1, "more than was asked for");
    }
    Ok(())
}

/// What the JSON tells beside the operation.
const NUMBERS: [&str; 7] = [
    "connections",
    "requests_per_s",
    "p50_ms",
    "p99_ms",
    "server_cpu_us",
    "engine_per_s",
    "ratio",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operation: Operation, connections: u32, ratio: f64) -> Row {
        Row {
            operation,
            connections,
            requests_per_s: 10_000.0 * ratio,
            p50_ms: 0.5,
            p99_ms: 1.25,
            server_cpu_us: 80.4,
            engine_per_s: 10_000.0,
            ratio,
        }
    }

    #[test]
    fn json_tells_exactly_what_was_promised() {
        let rows = [row(Operation::GetMasked, 16, 0.5)];

        let text = json(&rows).unwrap();

        let expected = serde_json::json!([{
            "operation": "get masked",
            "connections": 16,
            "requests_per_s": 5000.0,
            "p50_ms": 0.5,
            "p99_ms": 1.25,
            "server_cpu_us": 80.4,
            "engine_per_s": 10000.0,
            "ratio": 0.5,
        }]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        check(&text, 1).unwrap();
    }

    #[test]
    fn impossible_results_are_refused() {
        for ratio in [0.0, f64::NAN, f64::INFINITY] {
            let text = json(&[row(Operation::Create, 1, ratio)]).unwrap();
            assert!(check(&text, 1).is_err(), "{ratio}");
        }
        assert!(check("[]", 1).is_err());
    }

    #[test]
    fn the_chart_has_a_group_per_operation() {
        let rows = [
            row(Operation::Create, 1, 0.25),
            row(Operation::Create, 16, 1.5),
            row(Operation::GetMasked, 1, 0.5),
            row(Operation::GetMasked, 16, 0.75),
        ];

        let chart = chart(&rows);

        let groups: Vec<_> = chart
            .groups
            .iter()
            .map(|group| (group.name.as_str(), group.ratios.clone()))
            .collect();
        let expected = [("create", vec![0.25, 1.5]), ("get masked", vec![0.5, 0.75])];
        assert_eq!(groups, expected);
        assert_eq!(chart.series, ["1 connection", "16 connections"]);
    }

    #[test]
    fn the_table_has_a_line_per_result() {
        let rows = [
            row(Operation::Create, 1, 0.25),
            row(Operation::GetRevealed, 64, 0.75),
        ];

        let text = table(&rows).to_string();

        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
        assert!(lines[3].contains("get revealed") && lines[3].ends_with(" 0.75 |"));
    }
}
