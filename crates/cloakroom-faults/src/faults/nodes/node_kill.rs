//! A node is killed and started again, then the next one.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    for node in &stage.cluster.nodes {
        node.machine.kill("cloakroom").await?;
        tokio::time::sleep(stage.hold / 2).await;
        node.start(&stage.cluster.binary)?;
        node.wait_until_ready().await?;
        // The load balancer finds it a second later: one of two is always there.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    Ok(())
}
