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
use super::programs;
use super::report::{check_list, table};
use super::server::Server;
use super::stage::{Measured, Stage, announce};

/// One operation, asked of so many nodes.
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

/// Measures each number of nodes in turn; they stay until the end.
pub(super) async fn measure(stage: &Stage, numbers: &[usize]) -> Result<Vec<Row>> {
    programs::require(&[("haproxy", "haproxy"), ("redis-cli", "redis-tools")])?;
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    for number in numbers {
        ensure!(number > 0, "without a node nobody answers");
        while others.len() + 1 < number {
            let name = format!("node {}", others.len() + 2);
            others.push(stage.start_node(&name, &[EVERYTHING]).await?);
        }
        let nodes: Vec<&Server> = std::iter::once(&stage.node).chain(&others).collect();
        stage.kept.forget_newer_rows().await?;
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
            stage.kept.checkpoint().await?;
            let load = stage.load.sent_to(&proxy.address);
            let mut processes = stage.processes(nodes);
            processes.proxy = Some(proxy.pid);
            let asked = (operation, connections);
            let measured = stage.measure(&load, &processes, asked).await?;
            let after = counters::read(stage).await?;
            rows.push(Row::new(nodes.len(), asked, &measured, after - before));
            before = after;
        }
    }
    Ok(rows)
}

impl Row {
    /// `counted` was counted during the warm-up as well.
    fn new(
        nodes: usize,
        (operation, connections): (Operation, u32),
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

/// Rates and what was asked of the databases; where the CPU time goes.
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

/// What is told of each row, beside its operation.
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

/// The results for programs, provided that nothing in them is impossible.
pub(super) fn json(rows: &[Row]) -> Result<String> {
    let all = Map::from_iter([("nodes".to_owned(), serde_json::to_value(rows)?)]);
    // A short run may be too short to see anything of Redis.
    let others = ["operation", "redis_cpu_us", "redis_scripts_per_request"];
    check_list(&all, "nodes", &NUMBERS, &others)?;
    let mut text = serde_json::to_string_pretty(&all)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::Outcome;

    fn row(nodes: usize) -> Row {
        Row {
            nodes,
            operation: Operation::Create,
            connections: 64,
            requests_per_s: 9000.0,
            p50_ms: 7.0,
            p99_ms: 12.5,
            cpu: CpuShares {
                load: 8.0,
                proxy: 15.0,
                servers: 80.5,
                postgres: 60.0,
                redis: 20.0,
            },
            memory_mb: 64.0,
            transactions_per_request: 0.125,
            redis_scripts_per_request: 2.0,
            redis_commands_per_request: 48.0,
        }
    }

    #[test]
    fn json_tells_every_number_and_nothing_impossible() {
        let text = json(&[row(1), row(2)]).unwrap();

        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["nodes"][1]["nodes"], 2);
        assert_eq!(all["nodes"][1]["proxy_cpu_us"], 15.0);
        assert!(json(&[]).is_err());
        let mut impossible = row(3);
        impossible.transactions_per_request = f64::NAN;
        assert!(json(&[impossible]).is_err());
    }

    #[test]
    fn parts_add_up() {
        let [_, shares] = tables(&[row(1)]);

        let text = shares.to_string();
        assert!(text.ends_with(" 183.5 |"), "{text}");
    }

    #[test]
    fn counters_are_shared_by_all_requests_that_they_saw() {
        let outcome = |requests| Outcome::with_requests(requests);
        let measured = Measured {
            warm_up: outcome(100),
            outcome: outcome(300),
            cpu: CpuShares::default(),
            memory_mb: 64.0,
        };
        let counted = Counters {
            transactions: 200,
            redis_commands: 4000,
            redis_scripts: 800,
        };

        let row = Row::new(2, (Operation::Create, 64), &measured, counted);

        assert_eq!(row.transactions_per_request, 0.5);
        assert_eq!(row.redis_commands_per_request, 10.0);
        assert_eq!(row.redis_scripts_per_request, 2.0);
    }
}
