//! The disk of the primary is full: another one takes over, and nothing is torn.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let full = cluster.wait_for_primary().await?;
    full.disk.fill(1).await?;
    // Until the next segment of the log does not fit.
    full.force_log_switches().await;
    tokio::time::sleep(stage.hold * 2).await;
    full.disk.make_room()?;
    full.revive().await
}
