//! Operations on tokens while many proxied requests wait for a slow destination.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use comfy_table::Table;
use serde::Serialize;

use super::{Charges, Programs, Servers};
use crate::bench::load::Operation;
use crate::bench::report::table;
use crate::bench::stage::{Measured, Stage, announce};

const PATH: &str = "/proxy/slow";
/// Longer than all measurements take.
const HELD_FOR: &str = "--duration=3600s";
/// Until all requests wait at the destination. Each needs a TLS handshake.
const START_WAIT_MAX: Duration = Duration::from_secs(180);
const POLL_PAUSE: Duration = Duration::from_millis(250);

/// Results of one operation with a number of waiting requests.
#[derive(Serialize)]
pub(in crate::bench) struct Slow {
    /// Proxied requests that waited, before and after the measurement.
    held: [u32; 2],
    operation: Operation,
    connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    memory_mb: f64,
}

/// Measures the operations of the plan without waiting requests, then with `held` of them.
pub(in crate::bench) async fn hold(
    stage: &Stage,
    programs: &Programs,
    held: u32,
) -> Result<Vec<Slow>> {
    let servers = Servers::start(stage, programs, Some(held)).await?;
    let charges = Charges::new(stage, &servers)?;
    let mut rows = measure(stage, &servers).await?;

    let mut wrk = charges.wrk(&servers.node.address, PATH, held);
    wrk.args(["--threads=1", HELD_FOR]);
    wrk.stdin(Stdio::null()).stdout(Stdio::null());
    let mut holder = wrk.kill_on_drop(true).spawn()?;
    wait_until_held(&servers, held).await?;
    rows.extend(measure(stage, &servers).await?);
    holder.kill().await?;
    servers.stop().await?;
    Ok(rows)
}

async fn wait_until_held(servers: &Servers, wanted: u32) -> Result<()> {
    let started_at = Instant::now();
    loop {
        let held = servers.held().await?;
        if held >= wanted {
            println!("bench: the destination holds {held} requests");
            return Ok(());
        }
        ensure!(
            started_at.elapsed() < START_WAIT_MAX,
            "the destination holds only {held} of {wanted} requests; {}",
            servers.node.log_tail()
        );
        tokio::time::sleep(POLL_PAUSE).await;
    }
}

async fn measure(stage: &Stage, servers: &Servers) -> Result<Vec<Slow>> {
    let load = stage.load.sent_to(&servers.node.address);
    let processes = stage.processes(&[&servers.node]);
    let mut rows = Vec::new();
    for &connections in &stage.plan.connections {
        for &operation in &stage.plan.operations {
            let before = servers.held().await?;
            announce(operation.name(), connections, &format!("{before} held"));
            stage.database.checkpoint().await?;
            let measured = stage.measure(&load, &processes, operation, connections);
            let measured = measured.await?;
            let held = [before, servers.held().await?];
            rows.push(Slow::new(held, operation, connections, &measured));
        }
    }
    Ok(rows)
}

impl Slow {
    fn new(held: [u32; 2], operation: Operation, connections: u32, measured: &Measured) -> Self {
        let outcome = measured.outcome;
        Self {
            held,
            operation,
            connections,
            requests_per_s: outcome.requests_per_s(),
            p50_ms: outcome.p50_us / 1e3,
            p99_ms: outcome.p99_us / 1e3,
            memory_mb: measured.memory_mb,
        }
    }

    pub(in crate::bench) fn table_of(rows: &[Self]) -> Table {
        let header = [
            "operation",
            "connections",
            "held",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "MB",
        ];
        let rows = rows.iter().map(|row| {
            [
                row.operation.name().to_owned(),
                row.connections.to_string(),
                format!("{} to {}", row.held[0], row.held[1]),
                format!("{:.0}", row.requests_per_s),
                format!("{:.2}", row.p50_ms),
                format!("{:.2}", row.p99_ms),
                format!("{:.0}", row.memory_mb),
            ]
        });
        table(header, rows)
    }
}
