//! Replaces the nodes one after the other; no request may fail.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::clients::stats::Invariant;
use crate::faults::Environment;
use crate::mutation::Mutation;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    workload: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let failed = || {
        workload
            .stats
            .failed
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    let before = failed();
    // To the other release, and back.
    for binary in [environment.old_binary.as_ref(), Some(&cluster.binary)] {
        let Some(binary) = binary else { continue };
        for node in &cluster.nodes {
            let name = node.machine.name;
            if workload.mutation == Some(Mutation::UngracefulUpgrade) {
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
        workload.stats.violation(Invariant::Failed, what);
    }
    Ok(())
}
