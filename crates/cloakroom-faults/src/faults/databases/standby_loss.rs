//! Both standbys are gone: writes wait and fail, and none is acknowledged.

use std::sync::Arc;

use anyhow::Result;

use std::time::{Duration, Instant};

use crate::clients::Load;
use crate::clients::tally::Rule;
use crate::faults::Stage;

/// What a standby confirmed in its last moment may still be on its way to the client.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

pub(in crate::faults) async fn strike(stage: &Stage, load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let primary = cluster.wait_for_primary().await?;
    let standbys = cluster.standbys(primary);
    for standby in &standbys {
        standby.kill_postgres().await?;
    }
    let gone_at = Instant::now();
    // Longer than a write may take, so that answers are seen and not only silence.
    tokio::time::sleep(Duration::from_secs(13).max(stage.hold)).await;
    let late = load.tally.last_write().saturating_duration_since(gone_at);
    if late > ON_ITS_WAY {
        let what = format!("a write was acknowledged {late:?} after the last standby had gone");
        load.tally.violation(Rule::Unconfirmed, what);
    }
    for standby in &standbys {
        standby.start_patroni()?;
    }
    Ok(())
}
