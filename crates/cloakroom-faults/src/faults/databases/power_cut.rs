//! Cuts the power of all database machines: unflushed data is lost.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Workload;
use crate::faults::Environment;

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let databases = &environment.cluster.databases;
    for database in databases {
        database.disk.cut_power().await?;
    }
    for database in databases {
        database.machine.kill_all().await?;
        database.disk.remount().await?;
    }
    for database in databases {
        database.start()?;
    }
    Ok(())
}
