//! Partitions one node from the primary; all other links work.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let primary = &cluster.wait_for_primary().await?.machine;
    let node = &cluster.nodes[0].machine;
    cluster.partition(node, primary).await?;
    tokio::time::sleep(environment.fault_duration).await;
    cluster.heal(node, primary).await?;
    cluster.nodes[0].wait_until_ready().await
}
