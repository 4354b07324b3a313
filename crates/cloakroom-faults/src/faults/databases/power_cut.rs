//! All database machines lose power at once, with whatever they had not flushed.

use std::sync::Arc;

use anyhow::Result;

use crate::clients::Load;
use crate::faults::Stage;

pub(in crate::faults) async fn strike(stage: &Stage, _load: &Arc<Load>) -> Result<()> {
    let databases = &stage.cluster.databases;
    for database in databases {
        database.disk.cut_power().await?;
    }
    for database in databases {
        database.machine.kill_all().await?;
        database.disk.start_again().await?;
    }
    for database in databases {
        database.start()?;
    }
    Ok(())
}
