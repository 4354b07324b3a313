//! Kills Redis and restarts it without data.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let edge = &environment.cluster.edge;
    edge.machine.kill("redis").await?;
    tokio::time::sleep(environment.fault_duration).await;
    edge.start_redis()
}
