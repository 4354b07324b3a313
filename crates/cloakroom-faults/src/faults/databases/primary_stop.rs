//! The primary's PostgreSQL stands still for longer than its key in etcd lasts, and then goes on.

use std::sync::Arc;

use crate::clients::Load;
use crate::faults::Stage;
use anyhow::Result;
use nix::sys::signal::Signal;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let stopped = cluster.wait_for_primary().await?;
    stopped
        .machine
        .signal_all("postgres", Signal::SIGSTOP)
        .await?;
    // Long enough for another one to take over; the former primary then finds itself demoted.
    tokio::time::sleep(std::time::Duration::from_secs(20).max(stage.hold)).await;
    stopped
        .machine
        .signal_all("postgres", Signal::SIGCONT)
        .await
}
