//! Somebody holds the table of tokens locked, until all connections of all nodes wait for it.

use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let primary = stage.cluster.wait_for_primary().await?;
    // Longer than a write may take.
    let seconds = stage.hold.as_secs().max(12);
    let statement = format!(
        "begin; lock table token in access exclusive mode; select pg_sleep({seconds}); commit"
    );
    let mut psql = primary.psql("cloakroom", &statement);
    psql.stdout(Stdio::null()).status().await?;
    Ok(())
}
