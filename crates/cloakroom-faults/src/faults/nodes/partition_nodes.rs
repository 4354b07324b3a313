//! A node and the primary do not reach each other; everybody else does.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let primary = &cluster.wait_for_primary().await?.machine;
    let node = &cluster.nodes[0].machine;
    cluster.cut(node, primary).await?;
    tokio::time::sleep(stage.hold).await;
    cluster.heal(node, primary).await?;
    cluster.nodes[0].wait_until_ready().await
}
