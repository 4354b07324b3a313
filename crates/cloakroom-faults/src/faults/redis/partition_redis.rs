//! Drops all packets from nodes to Redis, so that connections time out instead of failing.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let address = &cluster.edge.redis_address;
    for node in &cluster.nodes {
        cluster
            .network
            .drop_packets(node.machine.name, address)
            .await?;
    }
    tokio::time::sleep(environment.fault_duration).await;
    for node in &cluster.nodes {
        cluster
            .network
            .restore_packets(node.machine.name, address)
            .await?;
    }
    Ok(())
}
