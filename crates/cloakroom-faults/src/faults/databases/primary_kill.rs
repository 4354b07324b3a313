//! The primary's PostgreSQL is killed: its standby takes over, or it recovers by itself.

use std::sync::Arc;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let primary = stage.cluster.wait_for_primary().await?;
    kill(primary.postmaster().await?, Signal::SIGKILL)?;
    primary
        .machine
        .signal_all("postgres", Signal::SIGKILL)
        .await
}
