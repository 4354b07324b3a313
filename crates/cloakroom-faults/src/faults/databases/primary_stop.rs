//! Stops PostgreSQL on the primary with SIGSTOP for longer than the TTL of its leader key, then continues it.

use std::sync::Arc;

use crate::clients::Workload;
use crate::faults::Environment;
use anyhow::Result;
use nix::sys::signal::Signal;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let stopped = cluster.wait_for_primary().await?;
    stopped
        .machine
        .signal_all("postgres", Signal::SIGSTOP)
        .await?;
    // Long enough for a failover; the former primary is then demoted.
    tokio::time::sleep(std::time::Duration::from_secs(20).max(environment.fault_duration)).await;
    stopped
        .machine
        .signal_all("postgres", Signal::SIGCONT)
        .await
}
