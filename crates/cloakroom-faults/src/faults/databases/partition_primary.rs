//! The primary reaches neither standbys nor the other members of etcd; nodes still reach it.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let alone = cluster.wait_for_primary().await?;
    let others = cluster.standbys(alone);
    for other in &others {
        cluster.cut(&alone.machine, &other.machine).await?;
    }
    // Long enough for the key in etcd to expire, and for both sides to have an opinion.
    tokio::time::sleep(std::time::Duration::from_secs(22).max(stage.hold)).await;
    for other in &others {
        cluster.heal(&alone.machine, &other.machine).await?;
    }
    Ok(())
}
