//! Kills both standbys: writes wait and fail, and none is acknowledged.

use std::sync::Arc;

use anyhow::Result;

use std::time::{Duration, Instant};

use crate::clients::Workload;
use crate::clients::stats::Invariant;
use crate::faults::Environment;

/// Responses to writes that a standby confirmed before it was killed may still be in flight.
const IN_FLIGHT_MARGIN: Duration = Duration::from_secs(1);

pub(in crate::faults) async fn inject(
    environment: &Environment,
    workload: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let primary = cluster.wait_for_primary().await?;
    let standbys = cluster.standbys(primary);
    for standby in &standbys {
        standby.kill_postgres().await?;
    }
    let killed_at = Instant::now();
    // Longer than the timeout of a write, so that clients receive responses.
    tokio::time::sleep(Duration::from_secs(13).max(environment.fault_duration)).await;
    let late = workload
        .stats
        .last_write()
        .saturating_duration_since(killed_at);
    if late > IN_FLIGHT_MARGIN {
        let what = format!("a write was acknowledged {late:?} after the last standby was killed");
        workload.stats.violation(Invariant::Unconfirmed, what);
    }
    for standby in &standbys {
        standby.start_patroni()?;
    }
    Ok(())
}
