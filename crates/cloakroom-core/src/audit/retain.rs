//! Removes expired days by truncating their partitions, never row by row.

use std::time::Duration;

use cloakroom_platform::storage;

use super::chain::{day_of, slot_of};
use super::{Audit, store};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes the days that ended more than `visible` ago and are older than `audit.keep_days`; returns
/// how many.
///
/// `visible` is the longest log retention of any tenant.
pub async fn retain(audit: &Audit, visible: Duration) -> Result<usize, storage::Error> {
    let min_days = u32::try_from(audit.keep_days).unwrap_or(u32::MAX);
    let retention = visible.max(DAY * min_days);
    let now = audit.writers.clock.synchronize().await?;
    // The day of the oldest entry to retain.
    let oldest = now.checked_sub(retention).map_or(0, day_of);
    let days = store::list_days(&audit.writers.db).await?;
    let (expired, retained): (Vec<i32>, Vec<i32>) = days.into_iter().partition(|day| *day < oldest);
    // A partition that is in use again cannot be truncated; its old days are removed in a later
    // run.
    let is_reused = |day: &i32| {
        retained
            .iter()
            .any(|retained| slot_of(*retained) == slot_of(*day))
    };
    let expired: Vec<i32> = expired.into_iter().filter(|day| !is_reused(day)).collect();
    let slots: Vec<i16> = expired.iter().map(|day| slot_of(*day)).collect();
    audit.writers.db.empty_partitions("log", &slots).await?;
    store::delete_chains(&audit.writers.db, &expired).await?;
    Ok(expired.len())
}
