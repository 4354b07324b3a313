//! No node reaches Redis: packets vanish, nobody says no.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let address = &cluster.edge.redis_address;
    for node in &cluster.nodes {
        cluster.network.lose(node.machine.name, address).await?;
    }
    tokio::time::sleep(stage.hold).await;
    for node in &cluster.nodes {
        cluster
            .network
            .find_again(node.machine.name, address)
            .await?;
    }
    Ok(())
}
