//! Nodes are replaced one after the other, and no client notices.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::clients::tally::Rule;
use crate::faults::Stage;
use crate::sabotage::Sabotage;

pub(in crate::faults) async fn strike(stage: &Stage, load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let failed = || load.tally.failed.load(std::sync::atomic::Ordering::Relaxed);
    let before = failed();
    // To the other program, and back.
    for binary in [stage.old_binary.as_ref(), Some(&cluster.binary)] {
        let Some(binary) = binary else { continue };
        for node in &cluster.nodes {
            let name = node.machine.name;
            if load.sabotage == Some(Sabotage::CarelessUpgrade) {
                node.machine.kill("cloakroom").await?;
            } else {
                cluster.edge.set_state(name, "drain").await?;
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                node.stop().await?;
            }
            node.start(binary)?;
            node.wait_until_ready().await?;
            cluster.edge.set_state(name, "ready").await?;
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        }
    }
    if failed() > before {
        let what = format!("{} requests failed during the upgrade", failed() - before);
        load.tally.violation(Rule::Failed, what);
    }
    Ok(())
}
