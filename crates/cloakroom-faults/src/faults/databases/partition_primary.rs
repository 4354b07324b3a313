//! Partitions the primary from the standbys and the other etcd members; nodes still reach it.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let alone = cluster.wait_for_primary().await?;
    let others = cluster.standbys(alone);
    for other in &others {
        cluster.partition(&alone.machine, &other.machine).await?;
    }
    // Long enough for the leader key in etcd to expire and for a failover.
    tokio::time::sleep(std::time::Duration::from_secs(22).max(environment.fault_duration)).await;
    for other in &others {
        cluster.heal(&alone.machine, &other.machine).await?;
    }
    Ok(())
}
