//! Locks the token table until all connections of all nodes wait for it.

use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let primary = environment.cluster.wait_for_primary().await?;
    // Longer than the timeout of a write.
    let seconds = environment.fault_duration.as_secs().max(12);
    let statement = format!(
        "begin; lock table token in access exclusive mode; select pg_sleep({seconds}); commit"
    );
    let mut psql = primary.psql("cloakroom", &statement);
    psql.stdout(Stdio::null()).status().await?;
    Ok(())
}
