//! Circuit breakers: a destination to which connections fail repeatedly is not tried for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::destination_key::DestinationKey;

/// Consecutive failures that open a circuit.
const FAILURES_MAX: u32 = 5;
/// How long a circuit stays open. Then one request tries a connection.
const OPEN_FOR: Duration = Duration::from_secs(5);
/// How long failures are remembered.
const FORGET_AFTER: Duration = Duration::from_secs(60);
const ENTRIES_MAX: usize = 10_000;
/// Of one tenant, which chooses the number of hosts with a wildcard in its list.
const ENTRIES_PER_TENANT_MAX: usize = 1_000;

/// The circuits of all tenants and destinations with recent failures.
///
/// Only failures to connect count, with TLS. Slow or invalid responses do not: one caller can provoke those, and would
/// cut off the others.
#[derive(Default)]
pub(crate) struct Breakers(Mutex<HashMap<DestinationKey, Circuit>>);

struct Circuit {
    failures: u32,
    failed_at: Instant,
    /// While it is open: when the next connection may be tried.
    retry_at: Option<Instant>,
}

/// The circuit is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open;

impl Breakers {
    /// Whether a connection may be tried now. After `OPEN_FOR` this is so for one caller, and for the next one only
    /// another `OPEN_FOR` later, unless the first reports its success.
    pub(crate) fn admit(&self, key: &DestinationKey, now: Instant) -> Result<(), Open> {
        let mut circuits = self.lock();
        let Some(retry_at) = circuits
            .get_mut(key)
            .and_then(|circuit| circuit.retry_at.as_mut())
        else {
            return Ok(());
        };
        if now < *retry_at {
            return Err(Open);
        }
        *retry_at = now + OPEN_FOR;
        Ok(())
    }

    pub(crate) fn record_success(&self, key: &DestinationKey) {
        self.lock().remove(key);
    }

    /// Returns whether this failure opened the circuit.
    pub(crate) fn record_failure(&self, key: &DestinationKey, now: Instant) -> bool {
        let mut circuits = self.lock();
        // Without room, the circuit stays closed.
        if !circuits.contains_key(key) && !has_room(&circuits, key.tenant) {
            return false;
        }
        let circuit = circuits.entry(key.clone()).or_insert(Circuit {
            failures: 0,
            failed_at: now,
            retry_at: None,
        });
        circuit.failures += 1;
        circuit.failed_at = now;
        let opens = circuit.failures >= FAILURES_MAX && circuit.retry_at.is_none();
        if circuit.failures >= FAILURES_MAX {
            circuit.retry_at = Some(now + OPEN_FOR);
        }
        opens
    }

    /// Forgets old failures. Returns how many circuits are open.
    pub(crate) fn sweep(&self, now: Instant) -> usize {
        let mut circuits = self.lock();
        circuits.retain(|_, circuit| now.duration_since(circuit.failed_at) < FORGET_AFTER);
        circuits
            .values()
            .filter(|circuit| circuit.retry_at.is_some())
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DestinationKey, Circuit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_room(circuits: &HashMap<DestinationKey, Circuit>, tenant: i32) -> bool {
    // Counted only when there are many.
    let of_tenant = || circuits.keys().filter(|key| key.tenant == tenant).count();
    circuits.len() < ENTRIES_PER_TENANT_MAX
        || (circuits.len() < ENTRIES_MAX && of_tenant() < ENTRIES_PER_TENANT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: i32) -> DestinationKey {
        DestinationKey {
            tenant,
            authority: "a.example".into(),
        }
    }

    #[test]
    fn repeated_failures_open_the_circuit_of_one_tenant() {
        let breakers = Breakers::default();
        let now = Instant::now();
        for failure in 1..=FAILURES_MAX {
            assert_eq!(breakers.admit(&key(1), now), Ok(()));
            let opens = breakers.record_failure(&key(1), now);
            assert_eq!(opens, failure == FAILURES_MAX);
        }

        assert_eq!(breakers.admit(&key(1), now), Err(Open));
        assert_eq!(breakers.admit(&key(2), now), Ok(()));
        assert_eq!(breakers.sweep(now), 1);
    }

    #[test]
    fn an_open_circuit_admits_one_attempt_at_a_time() {
        let breakers = Breakers::default();
        let now = Instant::now();
        for _ in 0..FAILURES_MAX {
            breakers.record_failure(&key(1), now);
        }

        let later = now + OPEN_FOR;
        assert_eq!(breakers.admit(&key(1), later), Ok(()));
        assert_eq!(breakers.admit(&key(1), later), Err(Open));
        assert!(!breakers.record_failure(&key(1), later));
        assert_eq!(breakers.admit(&key(1), later), Err(Open));
        assert_eq!(breakers.admit(&key(1), later + OPEN_FOR), Ok(()));
        breakers.record_success(&key(1));
        assert_eq!(breakers.admit(&key(1), later), Ok(()));
    }

    #[test]
    fn successes_and_time_erase_failures() {
        let breakers = Breakers::default();
        let now = Instant::now();
        for _ in 0..2 * FAILURES_MAX {
            breakers.record_failure(&key(1), now);
            breakers.record_success(&key(1));
        }
        assert_eq!(breakers.admit(&key(1), now), Ok(()));

        for _ in 1..FAILURES_MAX {
            breakers.record_failure(&key(1), now);
        }
        assert_eq!(breakers.sweep(now + FORGET_AFTER), 0);
        assert!(!breakers.record_failure(&key(1), now));
    }

    #[test]
    fn the_number_of_circuits_is_limited() {
        let breakers = Breakers::default();
        let now = Instant::now();
        for tenant in 0..=ENTRIES_MAX as i32 {
            breakers.record_failure(&key(tenant), now);
        }
        assert_eq!(breakers.lock().len(), ENTRIES_MAX);

        let breakers = Breakers::default();
        for host in 0..=ENTRIES_PER_TENANT_MAX {
            let authority = format!("{host}.example").into();
            let tenant = 1;
            breakers.record_failure(&DestinationKey { tenant, authority }, now);
        }
        assert_eq!(breakers.lock().len(), ENTRIES_PER_TENANT_MAX);
        breakers.record_failure(&key(2), now);
        assert_eq!(breakers.lock().len(), ENTRIES_PER_TENANT_MAX + 1);
    }
}
