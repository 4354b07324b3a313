//! A backup is restored when clients have gone on: what they deleted since is in it, and must be erased again.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::checker::{self, Times};
use crate::clients::Load;
use crate::faults::Stage;
use crate::ledger::Entry;
use crate::sabotage::Sabotage;

pub(in crate::faults) async fn strike(stage: &Stage, load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    let known = || load.ledger.entries().clone();
    let at_backup = known();
    let backup = cluster.back_up().await?;
    wait_for_deletions(stage, load, &at_backup).await?;
    let before_erasures = known();
    let file = cluster.nodes[0].config_folder().join("erasures");
    let file = file.display().to_string();
    cluster.vault(&["erasures", "write", &file]).await?;
    let times = Times {
        backup: at_backup,
        erasures: (before_erasures, known()),
    };

    let restored = backup.restore().await?;
    if load.sabotage != Some(Sabotage::ErasuresForgotten) {
        restored.vault(&["erasures", "apply", &file]).await?;
    }
    restored.start_node().await?;
    let api = load.api.at(&restored.api_url());
    checker::check_restored(load, &api, &times).await?;
    restored.remove().await
}

/// Waits as long as faults last, and longer where clients are too slow to delete anything of the backup by then.
async fn wait_for_deletions(stage: &Stage, load: &Load, backup: &[Entry]) -> Result<()> {
    const WAITS_MAX: usize = 20;
    for _ in 0..WAITS_MAX {
        stage.wait().await?;
        if checker::deleted_since(load, backup, &load.ledger.entries()) > 0 {
            return Ok(());
        }
    }
    bail!("nothing was deleted after the backup")
}
