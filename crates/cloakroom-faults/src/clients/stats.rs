//! Statistics of a workload: requests, acknowledged writes, outages and invariant violations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// Violations to report in full per invariant.
const MESSAGES_MAX: usize = 5;

/// An invariant that the checker verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invariant {
    /// An acknowledged token is missing or not readable.
    Lost,
    /// A write was applied twice.
    Doubled,
    /// A token does not have the data that was acknowledged last.
    Wrong,
    /// A deleted token is readable.
    Resurrected,
    /// A revealing read has no audit log entry.
    AuditError,
    /// A write was acknowledged while no standby could confirm it.
    Unconfirmed,
    /// A token is readable after its expiry, or not readable before it.
    Expired,
    /// An outage was longer than its limit.
    Unavailable,
    /// A request failed where none may fail.
    Failed,
}

impl Invariant {
    pub(crate) fn name(self) -> &'static str {
        let row = INVARIANTS.iter().find(|(invariant, _)| *invariant == self);
        row.map_or("", |(_, name)| name)
    }
}

const INVARIANTS: [(Invariant, &str); 9] = [
    (Invariant::Lost, "lost"),
    (Invariant::Doubled, "doubled"),
    (Invariant::Wrong, "wrong"),
    (Invariant::Resurrected, "resurrected"),
    (Invariant::AuditError, "unrecorded"),
    (Invariant::Unconfirmed, "unconfirmed"),
    (Invariant::Expired, "expired"),
    (Invariant::Unavailable, "unavailable"),
    (Invariant::Failed, "failed"),
];

/// Measures the longest time without a successful request.
#[derive(Clone, Copy)]
pub(crate) struct Outage {
    last: Instant,
    longest: Duration,
}

impl Outage {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            longest: Duration::ZERO,
        }
    }

    fn record_success(&mut self, now: Instant) {
        self.longest = self.longest_at(now);
        self.last = now;
    }

    fn longest_at(&self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.last))
    }
}

/// Outages by type of request.
#[derive(Clone, Copy)]
pub(crate) struct Outages<T = Outage> {
    pub(crate) writes: T,
    pub(crate) reads: T,
    pub(crate) catalog: T,
}

impl Outages {
    fn new() -> Self {
        let outage = Outage::new(Instant::now());
        Self {
            writes: outage,
            reads: outage,
            catalog: outage,
        }
    }
}

pub(crate) struct Stats {
    pub(crate) tried: AtomicU64,
    /// Acknowledged writes.
    pub(crate) acknowledged: AtomicU64,
    pub(crate) reads: AtomicU64,
    /// Attempts without a response or with a retryable error.
    pub(crate) failed: AtomicU64,
    outages: Mutex<Outages>,
    violations: Mutex<Vec<(Invariant, String)>>,
    /// Numbers of successful revealing reads.
    pub(crate) revealed: Mutex<Vec<u64>>,
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self {
            tried: AtomicU64::default(),
            acknowledged: AtomicU64::default(),
            reads: AtomicU64::default(),
            failed: AtomicU64::default(),
            outages: Mutex::new(Outages::new()),
            violations: Mutex::default(),
            revealed: Mutex::default(),
        }
    }

    pub(crate) fn record_write(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.outages().writes.record_success(Instant::now());
    }

    pub(crate) fn record_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.outages().reads.record_success(Instant::now());
    }

    pub(crate) fn record_catalog_read(&self) {
        self.outages().catalog.record_success(Instant::now());
    }

    /// Starts to measure outages.
    pub(crate) fn reset_outages(&self) {
        *self.outages() = Outages::new();
    }

    /// The longest outages so far.
    pub(crate) fn longest_outages(&self) -> Outages<Duration> {
        let now = Instant::now();
        let outages = self.outages();
        Outages {
            writes: outages.writes.longest_at(now),
            reads: outages.reads.longest_at(now),
            catalog: outages.catalog.longest_at(now),
        }
    }

    /// Time of the last acknowledged write.
    pub(crate) fn last_write(&self) -> Instant {
        self.outages().writes.last
    }

    fn outages(&self) -> MutexGuard<'_, Outages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violation(&self, invariant: Invariant, what: String) {
        self.violations().push((invariant, what));
    }

    pub(crate) fn count(&self, invariant: Invariant) -> usize {
        let violations = self.violations();
        violations
            .iter()
            .filter(|(broken, _)| *broken == invariant)
            .count()
    }

    /// The first violations of each invariant as messages.
    pub(crate) fn messages(&self) -> Vec<String> {
        let violations = self.violations();
        let of_invariant = |(invariant, name): &(Invariant, &str)| {
            let (invariant, name) = (*invariant, name.to_owned());
            let broken = violations
                .iter()
                .filter(move |(broken, _)| *broken == invariant);
            broken
                .take(MESSAGES_MAX)
                .map(move |(_, what)| format!("{name}: {what}"))
                .collect::<Vec<_>>()
        };
        INVARIANTS.iter().flat_map(of_invariant).collect()
    }

    /// Fails if an invariant was violated.
    pub(crate) fn require_no_violations(&self) -> Result<()> {
        let messages = self.messages();
        ensure!(
            messages.is_empty(),
            "invariants were violated: {messages:#?}"
        );
        Ok(())
    }

    fn violations(&self) -> MutexGuard<'_, Vec<(Invariant, String)>> {
        self.violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ongoing_outage_can_be_the_longest() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut outage = Outage::new(start);
        outage.record_success(at(4));
        outage.record_success(at(5));

        assert_eq!(outage.longest_at(at(6)), Duration::from_secs(4));
        assert_eq!(outage.longest_at(at(15)), Duration::from_secs(10));
    }

    #[test]
    fn violations_are_counted_by_invariant() {
        let stats = Stats::new();
        for number in 0..9 {
            stats.violation(Invariant::Lost, format!("{number}"));
        }
        stats.violation(Invariant::Wrong, "7".to_owned());

        assert_eq!(stats.count(Invariant::Lost), 9);
        assert_eq!(stats.count(Invariant::Doubled), 0);
        assert_eq!(stats.messages().len(), MESSAGES_MAX + 1);
        assert_eq!(stats.messages()[MESSAGES_MAX], "wrong: 7");
    }
}
