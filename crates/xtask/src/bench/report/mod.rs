//! The results: as tables for people, as JSON for programs.

mod compared;
mod json;
mod parts;
mod verdict;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

pub(super) use self::compared::{Compared, Comparison};
pub(super) use self::json::{check, check_list, json};

use self::verdict::Line;
use super::engine::Statement;
use super::load::Operation;
use super::processes::CpuShares;
use super::stage::Measured;
use super::turns::EngineMeasured;
use crate::plot::{Chart, Group};

/// Everything that one run measured.
#[derive(Default, Serialize)]
pub(super) struct Results {
    pub(super) operations: Vec<Row>,
    pub(super) engine: Vec<EngineRow>,
    pub(super) hello: Vec<HelloRow>,
    pub(super) compared: Vec<Comparison>,
    verdict: Vec<Line>,
}

/// One operation of a node, at one number of connections.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    pub(super) operation: Operation,
    pub(super) connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(flatten)]
    cpu: CpuShares,
    memory_mb: f64,
    engine_per_s: f64,
    engine_p50_ms: f64,
    engine_p99_ms: f64,
    /// Requests per second, relative to the engine's.
    ratio: f64,
    /// CPU time of the server, relative to that of the bare handler.
    to_hello: f64,
}

impl Row {
    pub(super) fn new(
        (operation, connections): (Operation, u32),
        node: &Measured,
        engine: &EngineMeasured,
        hello: &Measured,
    ) -> Self {
        let requests_per_s = node.outcome.requests_per_s();
        Self {
            operation,
            connections,
            requests_per_s,
            p50_ms: node.outcome.p50_us / 1e3,
            p99_ms: node.outcome.p99_us / 1e3,
            cpu: node.cpu,
            memory_mb: node.memory_mb,
            engine_per_s: engine.rate.per_s,
            engine_p50_ms: engine.latencies.p50_us / 1e3,
            engine_p99_ms: engine.latencies.p99_us / 1e3,
            ratio: requests_per_s / engine.rate.per_s,
            to_hello: node.cpu.servers / hello.cpu.servers,
        }
    }
}

/// One statement of the bare engine.
#[derive(Serialize)]
pub(super) struct EngineRow {
    statement: Statement,
    connections: u32,
    per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(rename = "load_cpu_us")]
    load_cpu: f64,
    #[serde(rename = "postgres_cpu_us")]
    postgres_cpu: f64,
}

impl EngineRow {
    pub(super) fn new(statement: Statement, connections: u32, measured: &EngineMeasured) -> Self {
        Self {
            statement,
            connections,
            per_s: measured.rate.per_s,
            p50_ms: measured.latencies.p50_us / 1e3,
            p99_ms: measured.latencies.p99_us / 1e3,
            load_cpu: measured.cpu.load,
            postgres_cpu: measured.cpu.postgres,
        }
    }
}

/// The bare handler.
#[derive(Serialize)]
pub(super) struct HelloRow {
    connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(rename = "load_cpu_us")]
    load_cpu: f64,
    #[serde(rename = "server_cpu_us")]
    server_cpu: f64,
    memory_mb: f64,
}

impl HelloRow {
    pub(super) fn new(connections: u32, measured: &Measured) -> Self {
        Self {
            connections,
            requests_per_s: measured.outcome.requests_per_s(),
            p50_ms: measured.outcome.p50_us / 1e3,
            p99_ms: measured.outcome.p99_us / 1e3,
            load_cpu: measured.cpu.load,
            server_cpu: measured.cpu.servers,
            memory_mb: measured.memory_mb,
        }
    }
}

impl Results {
    /// Holds what was measured against what is to be reached.
    pub(super) fn judge(&mut self) {
        self.verdict = verdict::of(&self.operations);
    }

    pub(super) fn tables(&self) -> Vec<Table> {
        let mut tables = vec![main(self), parts::table_of(self)];
        tables.extend(self.compared.iter().map(Comparison::table));
        if !self.verdict.is_empty() {
            tables.push(verdict::table_of(&self.verdict));
        }
        tables
    }
}

fn main(results: &Results) -> Table {
    let nodes = results.operations.iter().map(|row| {
        [
            row.operation.name().to_owned(),
            row.connections.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.2}", row.p50_ms),
            format!("{:.2}", row.p99_ms),
            format!("{:.0}", row.cpu.servers),
            format!("{:.1}", row.to_hello),
            format!("{:.0}", row.memory_mb),
            format!("{:.0}", row.engine_per_s),
            format!("{:.2}", row.engine_p50_ms),
            format!("{:.2}", row.engine_p99_ms),
            format!("{:.2}", row.ratio),
        ]
    });
    let hellos = results.hello.iter().map(|row| {
        [
            "hello".to_owned(),
            row.connections.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.2}", row.p50_ms),
            format!("{:.2}", row.p99_ms),
            format!("{:.0}", row.server_cpu),
            "1.0".to_owned(),
            format!("{:.0}", row.memory_mb),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ]
    });
    let header = [
        "operation",
        "connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "server CPU µs",
        "x hello",
        "MB",
        "engine/s",
        "p50 ms",
        "p99 ms",
        "ratio",
    ];
    table(header, nodes.chain(hellos))
}

/// A table that a terminal and a Markdown page show alike: words in the first column, numbers in the others.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Table {
    let mut table = Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(header)
        .add_rows(rows);
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::bench) fn row(operation: Operation, connections: u32, ratio: f64) -> Row {
        Row {
            operation,
            connections,
            requests_per_s: 10_000.0 * ratio,
            p50_ms: 0.5,
            p99_ms: 1.25,
            cpu: CpuShares {
                load: 8.0,
                proxy: 0.0,
                servers: 80.4,
                postgres: 30.0,
                redis: 9.5,
            },
            memory_mb: 64.0,
            engine_per_s: 10_000.0,
            engine_p50_ms: 0.25,
            engine_p99_ms: 1.0,
            ratio,
            to_hello: 6.7,
        }
    }

    pub(super) fn results(operations: Vec<Row>) -> Results {
        let hello = HelloRow {
            connections: 16,
            requests_per_s: 60_000.0,
            p50_ms: 0.2,
            p99_ms: 0.8,
            load_cpu: 7.0,
            server_cpu: 12.0,
            memory_mb: 6.0,
        };
        let engine = EngineRow {
            statement: Statement::Find,
            connections: 16,
            per_s: 10_000.0,
            p50_ms: 0.25,
            p99_ms: 1.0,
            load_cpu: 5.0,
            postgres_cpu: 25.0,
        };
        Results {
            operations,
            engine: vec![engine],
            hello: vec![hello],
            ..Results::default()
        }
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
        let results = results(vec![
            row(Operation::Create, 1, 0.25),
            row(Operation::GetRevealed, 64, 0.75),
        ]);

        let text = main(&results).to_string();

        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
        assert!(lines[3].contains("get revealed") && lines[3].ends_with(" 0.75 |"));
        assert!(lines[4].contains("hello") && lines[4].contains(" 60000 "));
    }
}
