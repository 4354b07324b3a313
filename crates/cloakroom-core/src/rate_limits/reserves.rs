//! Reserved admissions: requests of a busy client, counted in advance.
//!
//! A node with many concurrent requests of the same counters has Redis count more than those, and
//! admits the next ones by itself. Redis counts them as admitted at the end of their TTL, so no
//! window ever holds more than its limit: each counts from before its request arrives until a
//! window after it. Unused admissions are lost to the client, so few are reserved, and none for a
//! client with occasional requests.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// How long reserved admissions may be used; a fiftieth of a window if that is less.
const TTL: Duration = Duration::from_millis(20);
const TTLS_PER_WINDOW: u32 = 50;
/// All nodes together may reserve this fraction of a limit.
const LIMIT_DIVISOR: u64 = 100;
/// Redis responds within this time, or not at all.
const REDIS_TIMEOUT: Duration = Duration::from_millis(200);
/// Beyond this, expired reserves are removed at once.
const RESERVES_MAX: usize = 1_000;

/// Requests that are counted together: their counters have equal names and limits.
#[derive(Clone)]
pub(super) struct Group(pub(super) Arc<[Counter]>);

impl Group {
    fn parts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|it| (&*it.name, it.limit))
    }

    /// Admissions that may be reserved at a time with this number of nodes.
    fn share(&self, nodes: u64) -> u64 {
        let limits = self.0.iter().map(|counter| counter.limit);
        limits.min().unwrap_or(0) / (LIMIT_DIVISOR * nodes.max(1))
    }

    /// How long they may be used.
    fn ttl(&self) -> Duration {
        let windows = self.0.iter().map(|it| it.row.window / TTLS_PER_WINDOW);
        windows.min().map_or(TTL, |part| part.min(TTL))
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.parts().eq(other.parts())
    }
}

impl Eq for Group {}

impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for part in self.parts() {
            part.hash(state);
        }
    }
}

/// Admissions to reserve in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) admissions: u64,
    pub(super) ttl: Duration,
}

impl Reservation {
    pub(super) const NONE: Self = Self {
        admissions: 0,
        ttl: Duration::ZERO,
    };
}

#[derive(Default)]
struct Reserve {
    /// Outcomes of the next requests, in reverse order.
    outcomes: Vec<Vec<Outcome>>,
    until: Option<Instant>,
    /// Admissions used so far.
    used: u64,
    /// Start of a call to Redis that reserves more; it may have been cancelled since.
    requested_at: Option<Instant>,
}

impl Reserve {
    fn is_expired(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    fn is_requested(&self, now: Instant) -> bool {
        self.requested_at.is_some_and(|at| now < at + REDIS_TIMEOUT)
    }

    /// Expected requests within the TTL: more than were used if those were not enough.
    fn demand(&self) -> u64 {
        match self.outcomes.is_empty() {
            true => 2 * self.used,
            false => self.used,
        }
    }
}

#[derive(Default)]
pub(super) struct Reserves(Mutex<HashMap<Group, Reserve>>);

impl Reserves {
    /// Uses a reserved admission, if there is one.
    pub(super) fn take(&self, group: &Group, now: Instant) -> Option<Vec<Outcome>> {
        let mut reserves = self.lock();
        let reserve = reserves.get_mut(group)?;
        if reserve.is_expired(now) {
            return None;
        }
        let outcomes = reserve.outcomes.pop()?;
        reserve.used += 1;
        Some(outcomes)
    }

    /// How many admissions to reserve along with this number of requests: about as many as arrived
    /// since the last call.
    pub(super) fn plan(
        &self,
        group: &Group,
        requests: u64,
        nodes: u64,
        now: Instant,
    ) -> Reservation {
        let share = group.share(nodes);
        if share == 0 {
            return Reservation::NONE;
        }
        let mut reserves = self.lock();
        let mut demand = requests - 1;
        if let Some(known) = reserves.get(group) {
            let is_stocked = !known.is_expired(now) && !known.outcomes.is_empty();
            if is_stocked || known.is_requested(now) {
                return Reservation::NONE;
            }
            demand += known.demand();
        }
        let admissions = share.min(demand);
        if admissions == 0 {
            reserves.remove(group);
            return Reservation::NONE;
        }
        if reserves.len() >= RESERVES_MAX {
            reserves.retain(|_, it| it.is_requested(now) || !it.is_expired(now));
        }
        reserves.entry(group.clone()).or_default().requested_at = Some(now);
        Reservation {
            admissions,
            ttl: group.ttl(),
        }
    }

    /// Stores reserved admissions until `until`, which is measured from before the call.
    pub(super) fn insert(&self, group: &Group, mut outcomes: Vec<Vec<Outcome>>, until: Instant) {
        outcomes.reverse();
        let reserve = Reserve {
            outcomes,
            until: Some(until),
            used: 0,
            requested_at: None,
        };
        self.lock().insert(group.clone(), reserve);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Group, Reserve>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
