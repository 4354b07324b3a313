//! Kills and restarts each node in turn.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    for node in &environment.cluster.nodes {
        node.machine.kill("cloakroom").await?;
        tokio::time::sleep(environment.fault_duration / 2).await;
        node.start(&environment.cluster.binary)?;
        node.wait_until_ready().await?;
        // Until the load balancer's health check succeeds, so that one of two nodes is always available.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    Ok(())
}
