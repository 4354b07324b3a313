//! Admissions that were set aside: a busy client's requests, counted before they come.
//!
//! A node that hears many requests of the same counters has Redis count some more than it asks about, and lets
//! the next ones in by itself. Redis counts them as admitted at the end of the time that the node has for them, so no
//! window ever holds more than its limit: each counts from before it came until a window after it. What is not
//! used is lost to the client, which is why little is set aside, and nothing for somebody who asks now and then.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::counter::{Counter, Outcome};

/// How long a node may use what was set aside; a fiftieth of a window if that is less.
const TIME: Duration = Duration::from_millis(20);
const TIMES_PER_WINDOW: u32 = 50;
/// The part of a limit that all nodes together may have set aside.
const PART_OF_LIMIT: u64 = 100;
/// Redis answers sooner, or not at all.
const ANSWERED_WITHIN: Duration = Duration::from_millis(200);
/// Beyond it, those whose time is over are forgotten at once.
const RESERVES_MAX: usize = 1_000;

/// Counters of requests that are counted together: equal names and limits.
#[derive(Clone)]
pub(super) struct Group(pub(super) Arc<[Counter]>);

impl Group {
    fn parts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|it| (&*it.name, it.limit))
    }

    /// How many may be set aside at a time while so many nodes run.
    fn share(&self, nodes: u64) -> u64 {
        let limits = self.0.iter().map(|counter| counter.limit);
        limits.min().unwrap_or(0) / (PART_OF_LIMIT * nodes.max(1))
    }

    /// How long they may be used.
    fn time(&self) -> Duration {
        let windows = self.0.iter().map(|it| it.row.window / TIMES_PER_WINDOW);
        windows.min().map_or(TIME, |part| part.min(TIME))
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

/// What Redis is asked to set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) admissions: u64,
    pub(super) time: Duration,
}

impl Wish {
    pub(super) const NONE: Self = Self {
        admissions: 0,
        time: Duration::ZERO,
    };
}

#[derive(Default)]
struct Reserve {
    /// What the next requests hear, the last of them first.
    outcomes: Vec<Vec<Outcome>>,
    until: Option<Instant>,
    /// How many were used of the last ones.
    used: u64,
    /// When somebody began to ask Redis for more, who may have left since.
    wished_at: Option<Instant>,
}

impl Reserve {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    fn is_wished(&self, now: Instant) -> bool {
        self.wished_at.is_some_and(|at| now < at + ANSWERED_WITHIN)
    }

    /// How many are likely to come within the time: more than were used if those were not enough.
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
    /// Uses one, if there is one.
    pub(super) fn take(&self, group: &Group, now: Instant) -> Option<Vec<Outcome>> {
        let mut reserves = self.lock();
        let reserve = reserves.get_mut(group)?;
        if reserve.is_over(now) {
            return None;
        }
        let outcomes = reserve.outcomes.pop()?;
        reserve.used += 1;
        Some(outcomes)
    }

    /// How many to set aside when so many requests are asked about: about as many as came in the meantime.
    pub(super) fn wish(&self, group: &Group, requests: u64, nodes: u64, now: Instant) -> Wish {
        let share = group.share(nodes);
        if share == 0 {
            return Wish::NONE;
        }
        let mut reserves = self.lock();
        let mut demand = requests - 1;
        if let Some(known) = reserves.get(group) {
            let is_stocked = !known.is_over(now) && !known.outcomes.is_empty();
            if is_stocked || known.is_wished(now) {
                return Wish::NONE;
            }
            demand += known.demand();
        }
        let admissions = share.min(demand);
        if admissions == 0 {
            reserves.remove(group);
            return Wish::NONE;
        }
        if reserves.len() >= RESERVES_MAX {
            reserves.retain(|_, it| it.is_wished(now) || !it.is_over(now));
        }
        reserves.entry(group.clone()).or_default().wished_at = Some(now);
        Wish {
            admissions,
            time: group.time(),
        }
    }

    /// Keeps what was set aside, for as long as it was asked for, counted from before the question.
    pub(super) fn keep(&self, group: &Group, mut outcomes: Vec<Vec<Outcome>>, until: Instant) {
        outcomes.reverse();
        let reserve = Reserve {
            outcomes,
            until: Some(until),
            used: 0,
            wished_at: None,
        };
        self.lock().insert(group.clone(), reserve);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Group, Reserve>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
