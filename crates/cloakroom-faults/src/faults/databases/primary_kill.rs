//! Kills PostgreSQL on the primary: a standby takes over, or Patroni restarts it.

use std::sync::Arc;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let primary = environment.cluster.wait_for_primary().await?;
    kill(primary.postmaster().await?, Signal::SIGKILL)?;
    primary
        .machine
        .signal_all("postgres", Signal::SIGKILL)
        .await
}
