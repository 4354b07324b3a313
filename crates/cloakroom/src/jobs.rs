//! Every background job, its period and what it watches.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};
use uuid::Uuid;

use crate::admin::Readiness;
use crate::storage::{self, Connection};
use crate::vault::Vault;
use crate::{
    applications, audit, bins, card_networks, client_encryption, idempotency, ids, rate_limits,
    security_codes, sessions, tenants, threeds, token_intents, tokens,
};

/// What must be right before this node takes requests.
pub const CHECKS: &[&str] = &["database", "migrations", "clock", "bins", "card_ranges"];

const WATCH_PERIOD: Duration = Duration::from_secs(5);
const TEND_PERIOD: Duration = Duration::from_secs(1);
/// What one node has learned of card ranges, the others know after this time.
const CARD_RANGES_PERIOD: Duration = Duration::from_secs(4);
/// Days are removed long before their place is needed again, so an hour more or less is nothing.
const RETAIN_PERIOD: Duration = Duration::from_secs(60 * 60);
/// Several times within the time after which a silent node counts as gone.
const TELL_PERIOD: Duration = Duration::from_secs(2);
/// How many seconds of counts a killed node loses, at most.
const DEPRECATIONS_PERIOD: Duration = Duration::from_secs(2);
const SWEEP_PERIOD: Duration = Duration::from_secs(10);
/// Longer than the period, so that the node that sweeps goes on; another takes over when it dies.
const SWEEP_LEASE: Duration = Duration::from_secs(60);
/// Longer than any node can go on writing for a tenant that another node has deleted.
const TENANT_LATE: Duration = Duration::from_secs(10 * 60);
/// An imported BIN table is in use everywhere within ten seconds, loading included.
const BINS_PERIOD: Duration = Duration::from_secs(4);
/// A node whose clock is further off is not trusted with deadlines and log times.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);
const CLOCK_SKEW_WARN: Duration = Duration::from_secs(2);

/// Starts every job; dropping the set stops them.
pub fn start(vault: &Vault, readiness: &Readiness) -> JoinSet<()> {
    let mut jobs = JoinSet::new();
    jobs.spawn(watch(vault.clone(), readiness.clone()));
    jobs.spawn(tend_security_codes(vault.clone()));
    jobs.spawn(sweep(vault.clone()));
    jobs.spawn(tend_audit(vault.clone()));
    jobs.spawn(retain_logs(vault.clone()));
    jobs.spawn(tell_node(vault.clone()));
    jobs.spawn(refresh_bins(vault.clone(), readiness.clone()));
    jobs.spawn(tend_card_ranges(vault.clone(), readiness.clone()));
    jobs.spawn(settle_threeds(vault.clone()));
    jobs.spawn(count_deprecated(vault.clone()));
    jobs
}

/// Every so often, and after a delay not at once again.
fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Looks at what the node depends on, and tells load balancers through `/readyz`.
async fn watch(vault: Vault, readiness: Readiness) {
    let mut ticks = every(WATCH_PERIOD);
    loop {
        ticks.tick().await;
        examine(&vault, &readiness).await;
    }
}

/// Takes over an imported BIN table. A node waits for its first one, but not for a damaged one.
async fn refresh_bins(vault: Vault, readiness: Readiness) {
    let mut ticks = every(BINS_PERIOD);
    loop {
        ticks.tick().await;
        match bins::refresh(&vault).await {
            Ok(()) | Err(bins::Error::Damaged) => readiness.set("bins", Ok(())),
            // The database check tells about this one, and the next look tries again.
            Err(_) => {}
        }
    }
}

/// Keeps the card ranges of directory servers.
///
/// A node waits until it has tried for the first time, so that good cards are not refused.
async fn tend_card_ranges(vault: Vault, readiness: Readiness) {
    let mut ticks = every(CARD_RANGES_PERIOD);
    loop {
        ticks.tick().await;
        match card_networks::tend(&vault).await {
            Ok(()) => readiness.set("card_ranges", Ok(())),
            Err(error) => tracing::warn!(
                job = "card_ranges",
                error.kind = error.kind(),
                "card ranges could not be looked after; the ones in use stay"
            ),
        }
    }
}

/// Ends 3-D Secure sessions whose awaited step does not come any more.
async fn settle_threeds(vault: Vault) {
    let mut ticks = every(TEND_PERIOD);
    loop {
        ticks.tick().await;
        if threeds::settle_late(&vault).await.is_err() {
            tracing::warn!(
                job = "settle_threeds",
                "overdue 3-D Secure sessions could not be settled; the next round finds them again"
            );
        }
    }
}

/// Writes down who uses what is deprecated.
async fn count_deprecated(vault: Vault) {
    let mut ticks = every(DEPRECATIONS_PERIOD);
    loop {
        ticks.tick().await;
        // They are kept for the next attempt; the database check tells of the trouble.
        let _next_time = vault.deprecations.write(&vault).await;
    }
}

/// Forgets the keys of security codes when their time has come, and keeps the others published.
async fn tend_security_codes(vault: Vault) {
    let mut ticks = every(TEND_PERIOD);
    loop {
        ticks.tick().await;
        security_codes::tend(&vault).await;
    }
}

/// Tells the other nodes of this one, and learns how many share a limit when Redis is away.
async fn tell_node(vault: Vault) {
    let mut ticks = every(TELL_PERIOD);
    loop {
        ticks.tick().await;
        // The last known number holds until the next attempt; the database check tells of the trouble.
        let _next_time = rate_limits::tell_node(&vault).await;
    }
}

/// Writes down how far this node's records reach.
async fn tend_audit(vault: Vault) {
    let mut ticks = every(TEND_PERIOD);
    loop {
        ticks.tick().await;
        if let Err(error) = vault.audit.tend().await {
            tracing::warn!(
                job = "tend_audit",
                error.kind = error.kind(),
                "how far records reach could not be written down; the next attempt follows"
            );
        }
    }
}

/// Removes days of records that nobody may see any more, on one node at a time.
async fn retain_logs(vault: Vault) {
    let node = ids::new_uuid();
    let mut ticks = every(RETAIN_PERIOD);
    loop {
        ticks.tick().await;
        if let Err(error) = retain_once(&vault, node).await {
            tracing::warn!(
                job = "retain_logs",
                error.kind = error.kind(),
                "old records could not be removed; tenants do not see them"
            );
        }
    }
}

/// One round of removing old days; `None` when another node does it.
pub async fn retain_once(vault: &Vault, node: Uuid) -> Result<Option<usize>, storage::Error> {
    if !storage::hold_lease(&vault.db, "retain_logs", node, SWEEP_LEASE).await? {
        return Ok(None);
    }
    let shown = tenants::longest_log_retention(vault).await?;
    Ok(Some(audit::retain(vault, shown).await?))
}

/// Removes what has expired or was left by deleted tenants, on one node at a time.
async fn sweep(vault: Vault) {
    let node = ids::new_uuid();
    let mut ticks = every(SWEEP_PERIOD);
    // Not while the node starts, when requests want its first connections.
    ticks.reset();
    loop {
        ticks.tick().await;
        if let Err(error) = sweep_once(&vault, node).await {
            tracing::warn!(
                job = "sweep",
                error.kind = error.kind(),
                "what has expired could not be removed; it stays invisible"
            );
        }
    }
}

/// One round of removing what has expired and what deleted tenants left; `None` when another node does it.
///
/// Tells how many tokens had expired.
pub async fn sweep_once(vault: &Vault, node: Uuid) -> Result<Option<u64>, storage::Error> {
    if !storage::hold_lease(&vault.db, "sweep", node, SWEEP_LEASE).await? {
        return Ok(None);
    }
    let removed = tokens::sweep(vault).await?;
    token_intents::sweep(vault).await?;
    sessions::sweep(&vault.db).await?;
    threeds::sweep(vault).await?;
    metrics::counter!("tokens_expired_total").increment(removed);
    idempotency::sweep(&vault.db).await?;
    security_codes::sweep(&vault.db).await?;
    client_encryption::sweep(&vault.db).await?;
    applications::sweep(vault).await?;
    tenants::sweep(vault, TENANT_LATE).await?;
    Ok(Some(removed))
}

async fn examine(vault: &Vault, readiness: &Readiness) {
    let look = async |connection: &Connection| {
        let clock_skew = storage::clock_skew(connection).await?;
        let migrations = storage::check(connection).await;
        Ok(Seen {
            clock_skew,
            migrations,
        })
    };
    match vault.db.lend(look).await {
        Ok(seen) => tell(readiness, seen),
        Err(error) => readiness.set("database", Err(error.to_string())),
    }
}

/// What one look at the database showed.
struct Seen {
    clock_skew: Duration,
    migrations: Result<(), storage::Error>,
}

fn tell(readiness: &Readiness, seen: Seen) {
    let Seen {
        clock_skew,
        migrations,
    } = seen;
    readiness.set("database", Ok(()));
    readiness.set("migrations", migrations.map_err(|error| error.to_string()));
    metrics::gauge!("clock_skew_seconds").set(clock_skew.as_secs_f64());
    if clock_skew > CLOCK_SKEW_WARN {
        tracing::warn!(
            job = "watch",
            "this node's clock differs from the database's"
        );
    }
    let clock = match clock_skew {
        skew if skew > CLOCK_SKEW_MAX => Err(format!(
            "this node's clock is {} s off the database's; 60 s is the limit",
            skew.as_secs()
        )),
        _ => Ok(()),
    };
    readiness.set("clock", clock);
}
