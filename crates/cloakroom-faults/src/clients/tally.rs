//! What is counted while clients ask: requests, acknowledgements, silence, and answers that were wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many violations are told word by word.
const TOLD_MAX: usize = 5;

/// A way in which a vault can break its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Acknowledged, and not there or not readable.
    Lost,
    /// Two tokens of one number.
    Doubled,
    /// Not the data that was acknowledged last.
    Wrong,
    /// Deleted, and yet answered.
    Resurrected,
    /// Revealed without a record.
    Unrecorded,
    /// Acknowledged while no standby could confirm it.
    Unconfirmed,
    /// Answered after its expiry, or gone before.
    Expired,
    /// Nothing was acknowledged for longer than is promised.
    Unavailable,
    /// A client saw a failure where none may be seen.
    Failed,
}

impl Rule {
    pub(crate) fn name(self) -> &'static str {
        let row = RULES.iter().find(|(rule, _)| *rule == self);
        row.map_or("", |(_, name)| name)
    }
}

const RULES: [(Rule, &str); 9] = [
    (Rule::Lost, "lost"),
    (Rule::Doubled, "doubled"),
    (Rule::Wrong, "wrong"),
    (Rule::Resurrected, "resurrected"),
    (Rule::Unrecorded, "unrecorded"),
    (Rule::Unconfirmed, "unconfirmed"),
    (Rule::Expired, "expired"),
    (Rule::Unavailable, "unavailable"),
    (Rule::Failed, "failed"),
];

/// The longest time without a success.
#[derive(Clone, Copy)]
pub(crate) struct Silence {
    last: Instant,
    longest: Duration,
}

impl Silence {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            longest: Duration::ZERO,
        }
    }

    fn heard(&mut self, now: Instant) {
        self.longest = self.until(now);
        self.last = now;
    }

    fn until(&self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.last))
    }
}

/// How long each kind of request was without a success.
#[derive(Clone, Copy)]
pub(crate) struct Silences<T = Silence> {
    pub(crate) writes: T,
    pub(crate) reads: T,
    pub(crate) catalog: T,
}

impl Silences {
    fn new() -> Self {
        let silence = Silence::new(Instant::now());
        Self {
            writes: silence,
            reads: silence,
            catalog: silence,
        }
    }
}

pub(crate) struct Tally {
    pub(crate) tried: AtomicU64,
    /// Writes that were acknowledged.
    pub(crate) acknowledged: AtomicU64,
    pub(crate) reads: AtomicU64,
    /// Attempts that got no answer, or one that says to try again.
    pub(crate) failed: AtomicU64,
    silences: Mutex<Silences>,
    violations: Mutex<Vec<(Rule, String)>>,
    /// Which revealed reads were answered, by number.
    pub(crate) revealed: Mutex<Vec<u64>>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            tried: AtomicU64::default(),
            acknowledged: AtomicU64::default(),
            reads: AtomicU64::default(),
            failed: AtomicU64::default(),
            silences: Mutex::new(Silences::new()),
            violations: Mutex::default(),
            revealed: Mutex::default(),
        }
    }

    pub(crate) fn wrote(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.silences().writes.heard(Instant::now());
    }

    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.silences().reads.heard(Instant::now());
    }

    /// Something was answered that is no tenant's own.
    pub(crate) fn looked_up(&self) {
        self.silences().catalog.heard(Instant::now());
    }

    /// Silence counts from here.
    pub(crate) fn listen(&self) {
        *self.silences() = Silences::new();
    }

    /// The longest silences so far.
    pub(crate) fn silent(&self) -> Silences<Duration> {
        let now = Instant::now();
        let silences = self.silences();
        Silences {
            writes: silences.writes.until(now),
            reads: silences.reads.until(now),
            catalog: silences.catalog.until(now),
        }
    }

    /// When the last write was acknowledged.
    pub(crate) fn last_write(&self) -> Instant {
        self.silences().writes.last
    }

    fn silences(&self) -> MutexGuard<'_, Silences> {
        self.silences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violation(&self, rule: Rule, what: String) {
        self.violations().push((rule, what));
    }

    pub(crate) fn count(&self, rule: Rule) -> usize {
        let violations = self.violations();
        violations
            .iter()
            .filter(|(broken, _)| *broken == rule)
            .count()
    }

    /// The first violations of each rule, as sentences.
    pub(crate) fn told(&self) -> Vec<String> {
        let violations = self.violations();
        let of_rule = |(rule, name): &(Rule, &str)| {
            let (rule, name) = (*rule, name.to_owned());
            let told = violations.iter().filter(move |(broken, _)| *broken == rule);
            told.take(TOLD_MAX)
                .map(move |(_, what)| format!("{name}: {what}"))
                .collect::<Vec<_>>()
        };
        RULES.iter().flat_map(of_rule).collect()
    }

    fn violations(&self) -> MutexGuard<'_, Vec<(Rule, String)>> {
        self.violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silence_may_be_the_one_that_lasts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut silence = Silence::new(start);
        silence.heard(at(4));
        silence.heard(at(5));

        assert_eq!(silence.until(at(6)), Duration::from_secs(4));
        assert_eq!(silence.until(at(15)), Duration::from_secs(10));
    }

    #[test]
    fn violations_are_counted_by_rule() {
        let tally = Tally::new();
        for number in 0..9 {
            tally.violation(Rule::Lost, format!("{number}"));
        }
        tally.violation(Rule::Wrong, "7".to_owned());

        assert_eq!(tally.count(Rule::Lost), 9);
        assert_eq!(tally.count(Rule::Doubled), 0);
        assert_eq!(tally.told().len(), TOLD_MAX + 1);
        assert_eq!(tally.told()[TOLD_MAX], "wrong: 7");
    }
}
