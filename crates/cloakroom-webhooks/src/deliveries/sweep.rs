//! Ends deliveries whose time has passed, deletes old ones, and measures the backlog.

use std::time::Duration;

use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use tokio::time::Instant;

use super::State;
use super::schedule::EXPIRY;
use super::store;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long deliveries stay in the log and can be replayed.
const KEEP_DELIVERED: Duration = Duration::from_secs(7 * DAY.as_secs());
const KEEP_FAILED: Duration = Duration::from_secs(30 * DAY.as_secs());

/// Small enough that a batch commits quickly and holds few locks.
const BATCH: i64 = 1_000;
/// The next run continues after this time.
const BUDGET: Duration = Duration::from_secs(20);

/// Ends and deletes deliveries by their age; returns how many were deleted.
pub async fn sweep(vault: &Vault) -> Result<usize, storage::Error> {
    let db = &vault.db;
    let deadline = Instant::now() + BUDGET;
    let full = usize::try_from(BATCH).unwrap_or(usize::MAX);
    let mut deleted = 0;
    // One batch of each kind in turn, so that none waits for another.
    loop {
        let expired = store::expire(db, BATCH, EXPIRY).await?;
        catalog::WEBHOOK_EVENTS_FAILED.increment(expired as u64);
        let delivered = store::sweep(db, BATCH, State::Delivered, KEEP_DELIVERED).await?;
        let failed = store::sweep(db, BATCH, State::Failed, KEEP_FAILED).await?;
        // Of one webhook, so there may be another even after a small batch.
        let orphans = store::sweep_orphans(db, BATCH).await?;
        deleted += delivered + failed + orphans;
        let has_more = [expired, delivered, failed]
            .into_iter()
            .any(|count| count >= full);
        let has_more = has_more || orphans > 0;
        if !has_more || Instant::now() >= deadline {
            return Ok(deleted);
        }
    }
}

/// Updates the gauges of the backlog.
pub async fn measure(vault: &Vault) -> Result<(), storage::Error> {
    let backlog = store::measure(&vault.db).await?;
    catalog::WEBHOOK_EVENTS_PENDING.set(backlog.pending as f64);
    catalog::WEBHOOK_OLDEST_PENDING.set(backlog.oldest_seconds);
    catalog::WEBHOOKS_DISABLED.set(backlog.disabled as f64);
    Ok(())
}
