//! Kills all processes of the primary's machine and takes down its network link.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let dead = cluster.wait_for_primary().await?;
    cluster
        .network
        .set_link_up(dead.machine.name, false)
        .await?;
    dead.machine.kill_all().await?;
    cluster.wait_for_primary().await?;
    tokio::time::sleep(environment.fault_duration).await;
    cluster.network.set_link_up(dead.machine.name, true).await?;
    dead.start()
}
