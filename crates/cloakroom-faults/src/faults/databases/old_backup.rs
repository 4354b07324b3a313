//! Restores an old backup: tokens that were deleted since must be erased again.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::checker::{self, RestoreSnapshots};
use crate::clients::Workload;
use crate::faults::Environment;
use crate::history::Entry;
use crate::mutation::Mutation;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    workload: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let snapshot = || workload.history.entries().clone();
    let at_backup = snapshot();
    let backup = cluster.back_up().await?;
    wait_for_deletions(environment, workload, &at_backup).await?;
    let before_erasures = snapshot();
    let file = cluster.nodes[0].config_folder().join("erasures");
    let file = file.display().to_string();
    cluster.vault(&["erasures", "write", &file]).await?;
    let snapshots = RestoreSnapshots {
        backup: at_backup,
        before_erasures,
        after_erasures: snapshot(),
    };

    let restored = backup.restore().await?;
    if workload.mutation != Some(Mutation::SkippedErasures) {
        let apply = ["erasures", "apply", "--max-tokens", "1000000", &file];
        restored.vault(&apply).await?;
    }
    restored.start_node().await?;
    let api = workload.api.at(&restored.api_url());
    checker::check_restored(workload, &api, &snapshots).await?;
    restored.remove().await
}

/// Waits for the fault duration, and longer until clients have deleted a token of the backup.
async fn wait_for_deletions(
    environment: &Environment,
    workload: &Workload,
    backup: &[Entry],
) -> Result<()> {
    const WAITS_MAX: usize = 20;
    for _ in 0..WAITS_MAX {
        environment.wait().await?;
        if checker::count_deleted_since(workload, backup, &workload.history.entries()) > 0 {
            return Ok(());
        }
    }
    bail!("no token was deleted after the backup")
}
