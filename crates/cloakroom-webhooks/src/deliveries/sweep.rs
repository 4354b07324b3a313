//! Ends deliveries whose time has passed, deletes old ones, and measures the backlog.

use std::time::Duration;

use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;

use super::State;
use super::schedule::RETRY_PERIOD;
use super::store;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long deliveries stay in the log and can be replayed.
const KEEP_DELIVERED: Duration = Duration::from_secs(7 * DAY.as_secs());
const KEEP_FAILED: Duration = Duration::from_secs(30 * DAY.as_secs());

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;
/// The next run continues after this many batches of each kind.
const BATCHES_MAX: usize = 20;

/// Ends and deletes deliveries by their age; returns how many were deleted.
pub async fn sweep(vault: &Vault) -> Result<usize, storage::Error> {
    let db = &vault.db;
    let expired = repeat(|| store::expire(db, BATCH, RETRY_PERIOD)).await?;
    metrics::counter!("webhook_events_failed_total").increment(expired as u64);
    let delivered = repeat(|| store::sweep(db, BATCH, State::Delivered, KEEP_DELIVERED)).await?;
    let failed = repeat(|| store::sweep(db, BATCH, State::Failed, KEEP_FAILED)).await?;
    let orphans = repeat(|| store::sweep_orphans(db, BATCH)).await?;
    Ok(delivered + failed + orphans)
}

async fn repeat<F>(batch: impl Fn() -> F) -> Result<usize, storage::Error>
where
    F: Future<Output = Result<usize, storage::Error>>,
{
    let full = usize::try_from(BATCH).unwrap_or(usize::MAX);
    let mut total = 0;
    for _ in 0..BATCHES_MAX {
        let count = batch().await?;
        total += count;
        if count < full {
            break;
        }
    }
    Ok(total)
}

/// Updates the gauges of the backlog.
pub async fn measure(vault: &Vault) -> Result<(), storage::Error> {
    let backlog = store::measure(&vault.db).await?;
    metrics::gauge!("webhook_events_pending").set(backlog.pending as f64);
    metrics::gauge!("webhook_oldest_pending_seconds").set(backlog.oldest_seconds);
    metrics::gauge!("webhooks_disabled").set(backlog.disabled as f64);
    Ok(())
}
