//! Background jobs and their periods.

use std::time::Duration;

use cloakroom_core::audit::{self, CheckpointError};
use cloakroom_core::vault::Vault;
use cloakroom_core::{idempotency, rate_limits};
use cloakroom_management::{applications, sessions, tenants};
use cloakroom_pages::checkout;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use cloakroom_platform::{certificates, ids};
use cloakroom_threeds::{networks, sessions as threeds};
use cloakroom_tokens::{bins, client_encryption, intents, security_codes, tokens};
use cloakroom_webhooks::{deliveries, webhooks};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use crate::admin::Readiness;
use crate::database_check::DatabaseCheck;
use crate::node::Node;
use crate::{measurements, rotation, sinks};

/// Checks that must pass before this node is ready.
pub const CHECKS: &[&str] = &[
    "database",
    "migrations",
    "clock",
    "audit",
    "bins",
    "card_ranges",
];

const WATCH_PERIOD: Duration = Duration::from_secs(5);
const MAINTENANCE_PERIOD: Duration = Duration::from_secs(1);
/// How long Redis can write keys of security codes to disk before a node stops publishing them.
const REDIS_CHECK_PERIOD: Duration = Duration::from_secs(60);
/// How long card ranges take to spread from one node to the others.
const CARD_RANGES_PERIOD: Duration = Duration::from_secs(4);
/// The same while this node has none yet.
const CARD_RANGES_INITIAL_PERIOD: Duration = Duration::from_millis(250);
/// How long a node waits for its first card ranges before it serves without them.
const CARD_RANGES_TIMEOUT: Duration = Duration::from_secs(60);
/// Checkpoints of one node are this far apart; others write theirs in between.
const CHECKPOINT_PERIOD: Duration = Duration::from_secs(10);
/// Days are removed long before their partition is needed again, so the period is not critical.
const RETAIN_PERIOD: Duration = Duration::from_secs(60 * 60);
/// Several heartbeats within the time after which a silent node counts as stopped.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(2);
/// A killed node loses at most this much of its counts.
const DEPRECATIONS_PERIOD: Duration = Duration::from_secs(2);
const WEBHOOKS_PERIOD: Duration = Duration::from_secs(10);
/// Keys are in use for months, and rotations take minutes.
const MEASURE_PERIOD: Duration = Duration::from_secs(5 * 60);
/// How soon a node notices that a rotation can advance.
const ROTATION_PERIOD: Duration = Duration::from_secs(1);
/// How often nodes look for keys near the end of their cryptoperiod.
const SCHEDULE_PERIOD: Duration = Duration::from_secs(10 * 60);
const SWEEP_PERIOD: Duration = Duration::from_secs(10);
/// Longer than the period, so that the sweeping node renews it; another node takes over after a
/// crash.
const SWEEP_LEASE: Duration = Duration::from_secs(60);
/// Longer than any node can continue to write for a tenant that another node has deleted.
const TENANT_WRITE_GRACE: Duration = Duration::from_secs(10 * 60);
/// An imported BIN table is in use on every node within ten seconds, including the load.
const BINS_PERIOD: Duration = Duration::from_secs(4);

/// Starts all jobs, none of which ends by itself; dropping the set stops them.
pub fn start(node: &Node, readiness: &Readiness) -> JoinSet<()> {
    let mut jobs = JoinSet::new();
    jobs.spawn(watch(node.clone(), readiness.clone()));
    jobs.spawn(probe_key_provider(node.clone()));
    jobs.spawn(maintain_security_codes(node.clone()));
    jobs.spawn(sweep(node.clone()));
    jobs.spawn(synchronize_clock(node.clone()));
    jobs.spawn(write_checkpoints(node.clone(), readiness.clone()));
    jobs.spawn(sinks::run(Vault::clone(node)));
    jobs.spawn(retain_logs(node.clone()));
    jobs.spawn(heartbeat(node.clone()));
    jobs.spawn(refresh_bins(node.clone(), readiness.clone()));
    jobs.spawn(refresh_card_ranges(node.clone(), readiness.clone()));
    jobs.spawn(complete_overdue_threeds(node.clone()));
    jobs.spawn(store_deprecated_calls(node.clone()));
    jobs.spawn(deliveries::run(node.webhooks.clone()));
    jobs.spawn(maintain_webhooks(node.clone()));
    let certificates = node.certificates();
    if !certificates.is_empty() {
        jobs.spawn(certificates::watch(certificates));
    }
    jobs.spawn(measure(node.clone()));
    jobs.spawn(rotate_keys(node.clone()));
    jobs
}

/// An interval that delays missed ticks.
fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Records a run of a job that needs no text of its own if it fails.
fn report(node: &Node, job: &'static str, failure: Option<&'static str>) {
    if let Some(kind) = node.jobs.record(job, failure) {
        tracing::warn!(
            job,
            error.kind = kind,
            "the job failed; the next run retries"
        );
    }
}

/// Checks the dependencies of this node and updates `/readyz`.
async fn watch(node: Node, readiness: Readiness) {
    let mut ticks = every(WATCH_PERIOD);
    let mut database = DatabaseCheck::default();
    loop {
        ticks.tick().await;
        let checked = database.run(&node, &readiness).await;
        report(&node, "watch", checked.err().map(|error| error.kind()));
    }
}

/// Notices the end of an outage of the key provider, also while no request needs it.
///
/// Not part of `watch`: a provider that does not respond must not delay the checks of the database.
async fn probe_key_provider(node: Node) {
    let mut ticks = every(WATCH_PERIOD);
    loop {
        ticks.tick().await;
        node.keys.probe_provider().await;
    }
}

/// Measures what only the database knows.
async fn measure(node: Node) {
    let mut ticks = every(MEASURE_PERIOD);
    loop {
        ticks.tick().await;
        let measured = measurements::query(&node).await;
        report(&node, "measure", measured.err().map(|error| error.kind()));
    }
}

/// Loads an imported BIN table. A node is unready until its first one, unless the table is damaged.
async fn refresh_bins(node: Node, readiness: Readiness) {
    let mut ticks = every(BINS_PERIOD);
    loop {
        ticks.tick().await;
        let refreshed = bins::refresh(&node, &node.bins).await;
        if matches!(refreshed, Ok(()) | Err(bins::Error::Damaged)) {
            readiness.set("bins", Ok(()));
        }
        let failure = refreshed.err().map(|error| match error {
            bins::Error::Storage(error) => error.kind(),
            _ => "damaged_bin_table",
        });
        report(&node, "refresh_bins", failure);
    }
}

/// Refreshes the card ranges of directory servers.
///
/// A node is ready once it has the ranges of every directory server, so that enrolled cards are not
/// rejected. A directory server without ranges delays readiness by at most a minute.
async fn refresh_card_ranges(node: Node, readiness: Readiness) {
    let started_at = Instant::now();
    let mut is_ready = false;
    loop {
        let refreshed = networks::tend(&node, &node.card_networks).await;
        if refreshed.is_ok() {
            let missing = networks::missing_ranges(&node.card_networks);
            is_ready |= missing.is_empty() || CARD_RANGES_TIMEOUT <= started_at.elapsed();
            let outcome = match is_ready {
                true => Ok(()),
                false => Err(format!("no card ranges yet from {}", missing.join(", "))),
            };
            readiness.set("card_ranges", outcome);
        }
        let failure = refreshed.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("card_ranges", failure) {
            tracing::warn!(
                job = "card_ranges",
                error.kind = kind,
                "the card range job failed; the current card ranges remain in use"
            );
        }
        let delay = match is_ready {
            true => CARD_RANGES_PERIOD,
            false => CARD_RANGES_INITIAL_PERIOD,
        };
        sleep(delay).await;
    }
}

/// Completes 3-D Secure sessions whose next step is overdue.
async fn complete_overdue_threeds(node: Node) {
    let mut ticks = every(MAINTENANCE_PERIOD);
    loop {
        ticks.tick().await;
        let completed = threeds::time_out_overdue(&node).await;
        let failure = completed.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("settle_threeds", failure) {
            tracing::warn!(
                job = "settle_threeds",
                error.kind = kind,
                "overdue 3-D Secure sessions could not be completed; the next run retries"
            );
        }
    }
}

/// Stores the counts of deprecated calls.
async fn store_deprecated_calls(node: Node) {
    let mut ticks = every(DEPRECATIONS_PERIOD);
    loop {
        ticks.tick().await;
        // Counts are retained for the next attempt.
        let written = node.deprecation_counts.write(&node.db).await;
        report(
            &node,
            "deprecations",
            written.err().map(|error| error.kind()),
        );
    }
}

/// Deletes the expired keys of security codes, and keeps the others published.
async fn maintain_security_codes(node: Node) {
    let mut ticks = every(MAINTENANCE_PERIOD);
    let mut checked_at: Option<Instant> = None;
    loop {
        ticks.tick().await;
        if checked_at.is_none_or(|at| REDIS_CHECK_PERIOD <= at.elapsed()) {
            // The check logs what it finds, and stops the publication of keys.
            let _ignored = security_codes::check_redis(&node.security_codes).await;
            checked_at = Some(Instant::now());
        }
        security_codes::tend(&node.security_codes).await;
        report(&node, "security_codes", None);
    }
}

/// Writes the heartbeat of this node and counts the nodes that share a limit while Redis is
/// unavailable.
async fn heartbeat(node: Node) {
    let mut ticks = every(HEARTBEAT_PERIOD);
    loop {
        ticks.tick().await;
        // The last known number holds until the next attempt.
        let written = rate_limits::write_heartbeat(&node.rate_limits).await;
        report(&node, "heartbeat", written.err().map(|error| error.kind()));
    }
}

/// Follows the database's clock, by which audit entries are dated.
async fn synchronize_clock(node: Node) {
    let mut ticks = every(MAINTENANCE_PERIOD);
    loop {
        ticks.tick().await;
        let synchronized = node.audit.synchronize_clock().await;
        let failure = synchronized.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("synchronize_clock", failure) {
            tracing::warn!(
                job = "synchronize_clock",
                error.kind = kind,
                "the clock of the database could not be read; the next run retries"
            );
        }
    }
}

/// Writes checkpoints of the audit log. A node that finds the log rolled back stops logging, and is unready.
async fn write_checkpoints(node: Node, readiness: Readiness) {
    let mut ticks = every(CHECKPOINT_PERIOD);
    loop {
        ticks.tick().await;
        let written = node.audit.checkpoint().await;
        let failure = written.as_ref().err().map(CheckpointError::kind);
        if let Some(kind) = node.jobs.record("write_checkpoints", failure) {
            tracing::error!(
                job = "write_checkpoints",
                error.kind = kind,
                "no checkpoint of the audit log could be written"
            );
        }
        match written {
            Err(error @ CheckpointError::Halted(_)) => {
                readiness.set("audit", Err(error.to_string()));
            }
            // Whether the database is available is another check.
            Ok(()) | Err(CheckpointError::Storage(_)) => readiness.set("audit", Ok(())),
        }
        if let Err(error) = node.audit.prepare_next_key().await {
            tracing::warn!(
                job = "write_checkpoints",
                error.kind = error.kind(),
                "the audit key of the following day could not be certified yet"
            );
        }
    }
}

/// Removes expired days of the audit log, on one node at a time.
async fn retain_logs(node: Node) {
    let holder = ids::new_uuid();
    let mut ticks = every(RETAIN_PERIOD);
    loop {
        ticks.tick().await;
        let retained = retain_once(&node, holder).await;
        let failure = retained.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("retain_logs", failure) {
            tracing::warn!(
                job = "retain_logs",
                error.kind = kind,
                "expired days of the audit log could not be removed; tenants do not see them"
            );
        }
    }
}

/// Removes expired days once; `None` if another node holds the lease.
pub async fn retain_once(node: &Node, holder: Uuid) -> Result<Option<usize>, CheckpointError> {
    if !storage::hold_lease(&node.db, "retain_logs", holder, SWEEP_LEASE).await? {
        return Ok(None);
    }
    let retention = tenants::longest_log_retention(node).await?;
    Ok(Some(audit::retain(&node.audit, retention).await?))
}

/// Ends and deletes deliveries of webhooks, disables failing webhooks and measures the backlog, on one node at a time.
///
/// Not part of the sweep: an error here must not delay the deletion of tokens and tenants.
async fn maintain_webhooks(node: Node) {
    let holder = ids::new_uuid();
    let mut ticks = every(WEBHOOKS_PERIOD);
    loop {
        ticks.tick().await;
        let maintained = maintain_webhooks_once(&node, holder).await;
        let failure = maintained.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("webhooks", failure) {
            tracing::warn!(
                job = "webhooks",
                error.kind = kind,
                "old deliveries of webhooks could not be removed; the next run retries"
            );
        }
    }
}

/// Maintains webhooks once; only measures if another node holds the lease.
pub async fn maintain_webhooks_once(node: &Node, holder: Uuid) -> Result<(), storage::Error> {
    let maintained = maintain_deliveries(node, holder).await;
    // Every node measures, so that each has the figures whichever is scraped. Last, and without regard to errors: figures
    // must not keep deliveries from being removed.
    if let Err(error) = deliveries::measure(node).await {
        tracing::warn!(
            job = "webhooks",
            error.kind = error.kind(),
            "the backlog of webhooks could not be measured; its metrics are out of date"
        );
    }
    maintained
}

async fn maintain_deliveries(node: &Node, holder: Uuid) -> Result<(), storage::Error> {
    if storage::hold_lease(&node.db, "webhooks", holder, SWEEP_LEASE).await? {
        webhooks::disable_failing(node).await?;
        deliveries::sweep(node).await?;
    }
    Ok(())
}

/// Advances rotations of keys, on one node at a time.
async fn rotate_keys(node: Node) {
    let holder = ids::new_uuid();
    let (mut ticks, mut schedule) = (every(ROTATION_PERIOD), every(SCHEDULE_PERIOD));
    // Not during startup, when requests need the first connections.
    ticks.reset();
    loop {
        tokio::select! {
            _ = ticks.tick() => advance_rotations(&node, holder, &mut ticks).await,
            _ = schedule.tick() => if let Err(error) = rotation::start_due(&node, holder).await {
                tracing::warn!(
                    job = "rotate_keys",
                    error.kind = error.kind(),
                    "the rotation of a key could not be started; the next run tries again"
                );
            },
        }
    }
}

async fn advance_rotations(node: &Node, holder: Uuid, ticks: &mut Interval) {
    let worked = rotation::work(node, holder).await;
    if matches!(worked, Ok(Some(true))) {
        ticks.reset_immediately();
    }
    let failure = worked.err().map(|error| error.kind());
    if let Some(kind) = node.jobs.record("rotate_keys", failure) {
        tracing::warn!(
            job = "rotate_keys",
            error.kind = kind,
            "a key could not be rotated further; the next run continues"
        );
    }
}

/// Removes expired data and data of deleted tenants, on one node at a time.
async fn sweep(node: Node) {
    let holder = ids::new_uuid();
    let mut ticks = every(SWEEP_PERIOD);
    // Not during startup, when requests need the first connections.
    ticks.reset();
    loop {
        ticks.tick().await;
        let swept = sweep_once(&node, holder).await;
        let failure = swept.err().map(|error| error.kind());
        if let Some(kind) = node.jobs.record("sweep", failure) {
            tracing::warn!(
                job = "sweep",
                error.kind = kind,
                "expired data could not be removed; it remains invisible"
            );
        }
    }
}

/// Removes expired data, tenants whose deletion is due, and data of deleted tenants once; `None` if
/// another node holds the lease.
///
/// Returns the number of expired tokens.
pub async fn sweep_once(node: &Node, holder: Uuid) -> Result<Option<u64>, storage::Error> {
    if !storage::hold_lease(&node.db, "sweep", holder, SWEEP_LEASE).await? {
        return Ok(None);
    }
    let removed = tokens::sweep(node).await?;
    tokens::sweep_reserved_ids(node).await?;
    intents::sweep(node).await?;
    sessions::sweep(&node.db).await?;
    threeds::sweep(node).await?;
    checkout::sweep(&node.db).await?;
    catalog::TOKENS_EXPIRED.increment(removed);
    idempotency::sweep(&node.db).await?;
    security_codes::sweep(node).await?;
    client_encryption::sweep(node).await?;
    applications::sweep(node).await?;
    tenants::delete_due(node).await?;
    tenants::sweep(node, TENANT_WRITE_GRACE).await?;
    Ok(Some(removed))
}
