//! The results as tables, JSON and a plot.

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

/// Results of one run.
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
    /// Requests per second, relative to PostgreSQL alone.
    ratio: f64,
    /// CPU time of the server, relative to the axum handler.
    to_hello: f64,
}

impl Row {
    pub(super) fn new(
        operation: Operation,
        connections: u32,
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

/// One statement of PostgreSQL alone.
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

/// The axum handler.
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
    /// Compares the results with the targets.
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

/// A Markdown table: text in the first column, numbers in the others.
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
pub(super) mod tests;
