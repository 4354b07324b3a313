//! A whole machine dies: all processes of the primary's machine, and its network.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let dead = cluster.wait_for_primary().await?;
    cluster.network.plug(dead.machine.name, false).await?;
    dead.machine.kill_all().await?;
    cluster.wait_for_primary().await?;
    tokio::time::sleep(stage.hold).await;
    cluster.network.plug(dead.machine.name, true).await?;
    dead.start()
}
