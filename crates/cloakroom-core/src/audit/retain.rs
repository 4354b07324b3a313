//! Removes expired days by truncating their partitions, never row by row, and measures the log.

use std::time::Duration;

use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;

use super::checkpoint::CheckpointError;
use super::day::day_of;
use super::{Audit, store};

const DAY: u64 = 24 * 60 * 60;

/// Removes the days that ended more than `visible` ago and are older than `audit.keep_days`; returns
/// how many.
///
/// `visible` is the longest log retention of any tenant. The database removes the days with the rights of its owner, and
/// only those that are also older than the retention that the owner set (`log_retention`). A checkpoint states it first: a
/// day that is missing without one is a finding.
pub async fn retain(audit: &Audit, visible: Duration) -> Result<usize, CheckpointError> {
    let db = &audit.writers.db;
    let visible = i32::try_from(visible.as_secs().div_ceil(DAY)).unwrap_or(i32::MAX);
    let configured = i32::try_from(audit.keep_days).unwrap_or(i32::MAX);
    let Some(owner) = store::find_retention(db).await? else {
        return Ok(0);
    };
    let keep = visible.max(configured).max(owner);
    let today = day_of(audit.writers.clock.synchronize().await?);
    let oldest = today.saturating_sub(keep);
    if store::first_day(db).await?.is_none_or(|day| oldest <= day) {
        return Ok(0);
    }
    audit.state_retention(oldest).await?;
    Ok(store::drop_days(db, keep).await?.len())
}

/// Measures the sizes of the log and of the whole database.
pub async fn measure(audit: &Audit) -> Result<(), storage::Error> {
    let (log, database) = store::measure(&audit.writers.db).await?;
    catalog::AUDIT_LOG_BYTES.set(log as f64);
    catalog::DATABASE_BYTES.set(database as f64);
    Ok(())
}
