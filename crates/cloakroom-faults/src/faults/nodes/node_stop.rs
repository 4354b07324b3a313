//! A node stands still in the middle of everything, and then goes on.

use std::sync::Arc;

use crate::clients::Load;
use crate::faults::Stage;
use anyhow::Result;
use nix::sys::signal::Signal;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    for node in &stage.cluster.nodes {
        node.machine.signal("cloakroom", Signal::SIGSTOP)?;
        tokio::time::sleep(stage.hold).await;
        node.machine.signal("cloakroom", Signal::SIGCONT)?;
        node.wait_until_ready().await?;
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    Ok(())
}
