//! Several nodes behind a proxy, on one PostgreSQL and one Redis.

mod counters;
mod proxy;

use anyhow::{Result, ensure};
use comfy_table::Table;
use serde::Serialize;
use serde_json::Map;

use self::counters::Counters;
use super::load::Operation;
use super::pair::EVERYTHING;
use super::processes::CpuShares;
use super::report::{check_list, table};
use super::server::Server;
use super::stage::{Measured, Stage, announce};

/// Results of one operation with a number of nodes.
#[derive(Serialize)]
pub(super) struct Row {
    nodes: usize,
    operation: Operation,
    connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    #[serde(flatten)]
    cpu: CpuShares,
    memory_mb: f64,
    transactions_per_request: f64,
    redis_scripts_per_request: f64,
    redis_commands_per_request: f64,
}

/// Measures each number of nodes in turn. Nodes run until the end.
pub(super) async fn measure(stage: &Stage, numbers: &[usize]) -> Result<Vec<Row>> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    for number in numbers {
        ensure!(number > 0, "the number of nodes must not be 0");
        while others.len() + 1 < number {
            let name = format!("node {}", others.len() + 2);
            others.push(stage.start_node(&name, &[EVERYTHING]).await?);
        }
        let nodes: Vec<&Server> = std::iter::once(&stage.node).chain(&others).collect();
        stage.database.delete_newer_rows().await?;
        rows.extend(behind_proxy(stage, &nodes).await?);
    }
    for node in others {
        node.stop().await?;
    }
    rows.sort_by_key(|row| (row.operation, row.connections, row.nodes));
    Ok(rows)
}

async fn behind_proxy(stage: &Stage, nodes: &[&Server]) -> Result<Vec<Row>> {
    let proxy = proxy::start(nodes, stage.folder.path()).await?;
    let mut before = counters::read(stage).await?;
    let mut rows = Vec::new();
    for &connections in &stage.plan.connections {
        for &operation in &stage.plan.operations {
            let who = format!("{} nodes", nodes.len());
            announce(operation.name(), connections, &who);
            stage.database.checkpoint().await?;
            let load = stage.load.sent_to(&proxy.address);
            let mut processes = stage.processes(nodes);
            processes.proxy = Some(proxy.pid);
            let measured = stage
                .measure(&load, &processes, operation, connections)
                .await?;
            let after = counters::read(stage).await?;
            let counted = after - before;
            let row = Row::new(nodes.len(), operation, connections, &measured, counted);
            rows.push(row);
            before = after;
        }
    }
    Ok(rows)
}

impl Row {
    /// `counted` includes the warm-up.
    fn new(
        nodes: usize,
        operation: Operation,
        connections: u32,
        measured: &Measured,
        counted: Counters,
    ) -> Self {
        let requests = (measured.warm_up.requests + measured.outcome.requests) as f64;
        Self {
            nodes,
            operation,
            connections,
            requests_per_s: measured.outcome.requests_per_s(),
            p50_ms: measured.outcome.p50_us / 1e3,
            p99_ms: measured.outcome.p99_us / 1e3,
            cpu: measured.cpu,
            memory_mb: measured.memory_mb,
            transactions_per_request: counted.transactions as f64 / requests,
            redis_scripts_per_request: counted.redis_scripts as f64 / requests,
            redis_commands_per_request: counted.redis_commands as f64 / requests,
        }
    }
}

/// Rates and database usage; CPU time by process.
pub(super) fn tables(rows: &[Row]) -> [Table; 2] {
    let rates = rows.iter().map(|row| {
        [
            row.operation.name().to_owned(),
            row.connections.to_string(),
            row.nodes.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.2}", row.p50_ms),
            format!("{:.2}", row.p99_ms),
            format!("{:.0}", row.memory_mb),
            format!("{:.3}", row.transactions_per_request),
            format!("{:.3}", row.redis_scripts_per_request),
            format!("{:.3}", row.redis_commands_per_request),
        ]
    });
    let shares = rows.iter().map(|row| {
        let cpu = &row.cpu;
        let parts = [cpu.load, cpu.proxy, cpu.servers, cpu.postgres, cpu.redis];
        let [load, proxy, servers, postgres, redis] = parts.map(|part| format!("{part:.1}"));
        [
            row.operation.name().to_owned(),
            row.connections.to_string(),
            row.nodes.to_string(),
            load,
            proxy,
            servers,
            postgres,
            redis,
            format!("{:.1}", cpu.sum()),
        ]
    });
    let rates_header = [
        "operation",
        "connections",
        "nodes",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "MB",
        "transactions/request",
        "Redis scripts/request",
        "Redis commands/request",
    ];
    let shares_header = [
        "CPU µs per request",
        "connections",
        "nodes",
        "load",
        "HAProxy",
        "all nodes",
        "PostgreSQL",
        "Redis",
        "all",
    ];
    [table(rates_header, rates), table(shares_header, shares)]
}

/// Numbers of each row.
const NUMBERS: [&str; 12] = [
    "nodes",
    "connections",
    "requests_per_s",
    "p50_ms",
    "p99_ms",
    "load_cpu_us",
    "proxy_cpu_us",
    "server_cpu_us",
    "postgres_cpu_us",
    "memory_mb",
    "transactions_per_request",
    "redis_commands_per_request",
];

/// The results as JSON; an error if they are implausible.
pub(super) fn json(rows: &[Row]) -> Result<String> {
    let all = Map::from_iter([("nodes".to_owned(), serde_json::to_value(rows)?)]);
    // In a short run, the CPU time of Redis may be 0.
    let others = ["operation", "redis_cpu_us", "redis_scripts_per_request"];
    check_list(&all, "nodes", &NUMBERS, &others)?;
    let mut text = serde_json::to_string_pretty(&all)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests;
