//! Fills the disk of the primary: a standby takes over, and no data is corrupted.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let full = cluster.wait_for_primary().await?;
    full.disk.fill(1).await?;
    // Until the next WAL segment does not fit.
    full.fill_wal().await;
    tokio::time::sleep(environment.fault_duration * 2).await;
    full.disk.free_space()?;
    full.restart_stopped().await
}
