//! Stops each node with SIGSTOP, then continues it.

use std::sync::Arc;

use crate::clients::Workload;
use crate::faults::Environment;
use anyhow::Result;
use nix::sys::signal::Signal;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    for node in &environment.cluster.nodes {
        node.machine.signal("cloakroom", Signal::SIGSTOP)?;
        tokio::time::sleep(environment.fault_duration).await;
        node.machine.signal("cloakroom", Signal::SIGCONT)?;
        node.wait_until_ready().await?;
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    Ok(())
}
