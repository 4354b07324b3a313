//! Removing days that nobody may see any more: by emptying their partition, never row by row.

use std::time::Duration;

use super::chain::{day_of, slot_of};
use super::store;
use crate::storage;
use crate::vault::Vault;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes every day that ended before `shown` ago and is older than the setting keeps; tells how many.
///
/// `shown` is the longest log retention of any tenant.
pub async fn retain(vault: &Vault, shown: Duration) -> Result<usize, storage::Error> {
    let kept_days = u32::try_from(vault.config.audit.keep_days).unwrap_or(u32::MAX);
    let keep = shown.max(DAY * kept_days);
    let now = vault.audit.pens.chains.clock.hear(&vault.db).await?;
    // The day in which the oldest record lies that is to be kept.
    let oldest = now.checked_sub(keep).map_or(0, day_of);
    let days = store::list_days(&vault.db).await?;
    let (gone, kept): (Vec<i32>, Vec<i32>) = days.into_iter().partition(|day| *day < oldest);
    // Should old days have waited for so long that their partition is in use again, they wait on.
    let is_reused = |day: &i32| kept.iter().any(|kept| slot_of(*kept) == slot_of(*day));
    let gone: Vec<i32> = gone.into_iter().filter(|day| !is_reused(day)).collect();
    let slots: Vec<i16> = gone.iter().map(|day| slot_of(*day)).collect();
    vault.db.empty_partitions("log", &slots).await?;
    store::delete_chains(&vault.db, &gone).await?;
    Ok(gone.len())
}
