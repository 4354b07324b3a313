//! Redis is killed and comes back empty.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let edge = &stage.cluster.edge;
    edge.machine.kill("redis").await?;
    tokio::time::sleep(stage.hold).await;
    edge.start_redis()
}
