//! Proxied requests: a node that replaces a token, against a reverse proxy that only forwards.

mod charges;
mod servers;
mod slow;

use std::path::PathBuf;

use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;

use self::charges::Charges;
use self::servers::Servers;
pub(super) use self::slow::{Slow, hold};
use super::processes::{CpuShares, Processes};
use super::report::table;
use super::server::Server;
use super::stage::{Stage, announce};

/// The programs beside the node.
pub(super) struct Programs {
    pub(super) destination: PathBuf,
    pub(super) reverse_proxy: PathBuf,
}

/// Results of one proxy at one number of connections.
#[derive(Serialize)]
pub(super) struct Row {
    proxy: &'static str,
    connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// The share of the proxy in this is that of the destination.
    #[serde(flatten)]
    cpu: CpuShares,
    /// The rate of the node divided by that of the reverse proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// Measures both proxies in turn, at each number of connections.
pub(super) async fn measure(stage: &Stage, programs: &Programs) -> Result<Vec<Row>> {
    let servers = Servers::start(stage, programs, None).await?;
    let charges = Charges::new(stage, &servers)?;
    charges
        .require_replaced_token(&servers.node.address)
        .await?;
    let mut rows = Vec::new();
    for &connections in &stage.plan.connections {
        let bare = measure_one(stage, &servers, &charges, Proxy::Bare, connections).await?;
        let mut node = measure_one(stage, &servers, &charges, Proxy::Node, connections).await?;
        node.ratio = Some(node.requests_per_s / bare.requests_per_s);
        rows.extend([bare, node]);
    }
    servers.stop().await?;
    Ok(rows)
}

#[derive(Clone, Copy)]
enum Proxy {
    Node,
    Bare,
}

async fn measure_one(
    stage: &Stage,
    servers: &Servers,
    charges: &Charges<'_>,
    proxy: Proxy,
    connections: u32,
) -> Result<Row> {
    let (name, server): (&str, &Server) = match proxy {
        Proxy::Node => ("node", &servers.node),
        Proxy::Bare => ("bare proxy", &servers.reverse_proxy),
    };
    announce("charge", connections, name);
    stage.database.checkpoint().await?;
    let processes = Processes {
        proxy: Some(servers.destination.pid),
        ..stage.processes(&[server])
    };
    let warm_up_s = stage.plan.warm_up_s;
    charges.run(&server.address, connections, warm_up_s).await?;
    let before = processes.cpu_times()?;
    let measured_s = stage.plan.measured_s;
    let outcome = charges.run(&server.address, connections, measured_s);
    let outcome = outcome.await?;
    let cpu = processes.cpu_times()? - before;
    println!("{:>9.0}/s", outcome.requests_per_s());
    Ok(Row {
        proxy: name,
        connections,
        requests_per_s: outcome.requests_per_s(),
        p50_ms: outcome.p50_us / 1e3,
        p99_ms: outcome.p99_us / 1e3,
        cpu: cpu.shared_by(outcome.requests),
        ratio: None,
    })
}

/// Rates, with CPU time per request by process.
pub(super) fn table_of(rows: &[Row]) -> Table {
    let header = [
        "proxied charges",
        "connections",
        "requests/s",
        "of bare",
        "p50 ms",
        "p99 ms",
        "proxy CPU µs",
        "destination",
        "PostgreSQL",
        "Redis",
        "load",
    ];
    let rows = rows.iter().map(|row| {
        let ratio = row.ratio.map(|ratio| format!("{ratio:.2}"));
        [
            row.proxy.to_owned(),
            row.connections.to_string(),
            format!("{:.0}", row.requests_per_s),
            ratio.unwrap_or_default(),
            format!("{:.2}", row.p50_ms),
            format!("{:.2}", row.p99_ms),
            format!("{:.0}", row.cpu.servers),
            format!("{:.0}", row.cpu.proxy),
            format!("{:.0}", row.cpu.postgres),
            format!("{:.0}", row.cpu.redis),
            format!("{:.0}", row.cpu.load),
        ]
    });
    table(header, rows)
}
