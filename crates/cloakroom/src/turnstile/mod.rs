//! The turnstile: how many requests run at a time, fairly between tenants.
//!
//! A node has a number of places. Whoever finds one free takes it; the others stand in line, one line per
//! tenant, and a place that becomes free goes to the lines in turn. One tenant never holds more than three
//! quarters of the places, so that however much it asks for, the others find one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// Requests of one tenant that may wait; as many more would wait too long.
const LINE_MAX: usize = 1_000;

/// The number of a tenant.
type Tenant = i32;

#[derive(Clone)]
pub struct Turnstile {
    hall: Arc<Mutex<Hall>>,
    patience: Duration,
}

/// No place became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// A place of a tenant, given back when it is dropped.
pub struct Place {
    tenant: Tenant,
    /// Nobody's when the place was taken back before anyone stood on it.
    hall: Option<Arc<Mutex<Hall>>>,
}

struct Hall {
    places: usize,
    /// The places that one tenant may hold.
    share: usize,
    taken: usize,
    tenants: HashMap<Tenant, Line>,
    /// Tenants with someone in line, the next one first.
    turns: VecDeque<Tenant>,
}

#[derive(Default)]
struct Line {
    holds: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

impl Turnstile {
    pub fn new(places: usize, patience: Duration) -> Self {
        let places = places.max(1);
        Self {
            hall: Arc::new(Mutex::new(Hall {
                places,
                share: (places * 3 / 4).max(1),
                taken: 0,
                tenants: HashMap::new(),
                turns: VecDeque::new(),
            })),
            patience,
        }
    }

    /// Waits for a place, behind the others of this tenant.
    pub async fn enter(&self, tenant: Tenant) -> Result<Place, Busy> {
        let called = {
            let mut hall = lock(&self.hall);
            let share = hall.share;
            let is_full = hall.taken >= hall.places;
            let line = hall.tenants.entry(tenant).or_default();
            if !is_full && line.holds < share && line.waiting.is_empty() {
                line.holds += 1;
                hall.taken += 1;
                return Ok(self.place(tenant));
            }
            if line.waiting.len() >= LINE_MAX {
                return Err(Busy);
            }
            let (call, called) = oneshot::channel();
            line.waiting.push_back(call);
            if line.waiting.len() == 1 {
                hall.turns.push_back(tenant);
            }
            called
        };
        match timeout(self.patience, called).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }

    fn place(&self, tenant: Tenant) -> Place {
        Place {
            tenant,
            hall: Some(Arc::clone(&self.hall)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(hall) = self.hall.take() {
            lock(&hall).leave(self.tenant, &hall);
        }
    }
}

impl Hall {
    fn leave(&mut self, tenant: Tenant, hall: &Arc<Mutex<Self>>) {
        self.taken = self.taken.saturating_sub(1);
        if let Some(line) = self.tenants.get_mut(&tenant) {
            line.holds = line.holds.saturating_sub(1);
            if line.holds == 0 && line.waiting.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        while self.taken < self.places && self.call_next(hall) {}
    }

    /// Gives a place to the next line whose tenant may have one; false if there is none.
    fn call_next(&mut self, hall: &Arc<Mutex<Self>>) -> bool {
        for _ in 0..self.turns.len() {
            let Some(tenant) = self.turns.pop_front() else {
                return false;
            };
            let Some(line) = self.tenants.get_mut(&tenant) else {
                continue;
            };
            if line.holds >= self.share {
                self.turns.push_back(tenant);
                continue;
            }
            let is_given = line.give(tenant, hall);
            if !line.waiting.is_empty() {
                self.turns.push_back(tenant);
            } else if line.holds == 0 {
                self.tenants.remove(&tenant);
            }
            if is_given {
                self.taken += 1;
                return true;
            }
        }
        false
    }
}

impl Line {
    /// Gives a place to the first who is still waiting.
    fn give(&mut self, tenant: Tenant, hall: &Arc<Mutex<Hall>>) -> bool {
        while let Some(call) = self.waiting.pop_front() {
            let place = Place {
                tenant,
                hall: Some(Arc::clone(hall)),
            };
            match call.send(place) {
                Ok(()) => {
                    self.holds += 1;
                    return true;
                }
                // The one who waited has left. Nobody may give the place back, which was never counted.
                Err(mut place) => place.hall = None,
            }
        }
        false
    }
}

fn lock(hall: &Mutex<Hall>) -> MutexGuard<'_, Hall> {
    hall.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    /// Lets whatever is ready run.
    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    /// Stands in line, and tells which tenant it is when its turn has come.
    #[expect(clippy::disallowed_methods, reason = "the test ends with its lines")]
    fn stand(
        turnstile: &Turnstile,
        tenant: Tenant,
        told: &tokio::sync::mpsc::UnboundedSender<(Tenant, Place)>,
    ) -> tokio::task::JoinHandle<()> {
        let (turnstile, told) = (turnstile.clone(), told.clone());
        tokio::spawn(async move {
            if let Ok(place) = turnstile.enter(tenant).await {
                let _ = told.send((tenant, place));
            }
        })
    }

    fn is_empty(turnstile: &Turnstile) -> bool {
        let hall = lock(&turnstile.hall);
        hall.taken == 0 && hall.tenants.is_empty()
    }

    #[tokio::test]
    async fn one_tenant_holds_three_quarters_at_most_and_the_others_find_a_place() {
        let turnstile = Turnstile::new(8, SOON);
        let mut held = Vec::new();
        while let Ok(place) = turnstile.enter(1).await {
            held.push(place);
        }

        let others = [turnstile.enter(2).await, turnstile.enter(3).await];
        let too_many = turnstile.enter(4).await.is_err();

        assert_eq!(held.len(), 6);
        assert!(others.iter().all(Result::is_ok) && too_many);
        drop((held, others));
        assert!(turnstile.enter(1).await.is_ok());
        assert!(is_empty(&turnstile));
    }

    #[tokio::test]
    async fn places_go_round_the_tenants_in_turn() {
        let turnstile = Turnstile::new(1, Duration::from_secs(60));
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let held = turnstile.enter(9).await.ok();
        let mut lines = Vec::new();
        for tenant in [1, 1, 1, 1, 2, 2, 3] {
            lines.push(stand(&turnstile, tenant, &told));
            settle().await;
        }

        drop(held);
        let mut order = Vec::new();
        for _ in 0..7 {
            let (tenant, place) = heard.recv().await.unwrap();
            order.push(tenant);
            drop(place);
        }

        assert_eq!(order, [1, 2, 3, 1, 2, 1, 1]);
        assert!(is_empty(&turnstile));
    }

    #[tokio::test]
    async fn whoever_leaves_the_line_takes_no_place_along() {
        let turnstile = Turnstile::new(1, Duration::from_secs(60));
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let held = turnstile.enter(1).await.ok();
        let gone = [stand(&turnstile, 2, &told), stand(&turnstile, 1, &told)];
        settle().await;
        let _stays = stand(&turnstile, 2, &told);
        settle().await;

        for line in gone {
            line.abort();
        }
        settle().await;
        drop(held);

        let next = timeout(Duration::from_secs(10), heard.recv())
            .await
            .unwrap();
        assert_eq!(next.map(|(tenant, _)| tenant), Some(2));
        assert!(is_empty(&turnstile));
    }

    #[tokio::test]
    async fn a_line_is_bounded_in_length_and_time() {
        let turnstile = Turnstile::new(1, Duration::from_secs(60));
        let (told, _heard) = tokio::sync::mpsc::unbounded_channel();
        let _held = turnstile.enter(1).await.ok();
        let lines: Vec<_> = (0..LINE_MAX).map(|_| stand(&turnstile, 1, &told)).collect();
        while lock(&turnstile.hall).tenants[&1].waiting.len() < LINE_MAX {
            settle().await;
        }

        let at_once = timeout(Duration::from_secs(10), turnstile.enter(1)).await;
        assert_eq!(at_once.unwrap().err(), Some(Busy));
        drop(lines);
        let hasty = Turnstile::new(1, SOON);
        let _held = hasty.enter(1).await.ok();
        assert_eq!(hasty.enter(1).await.err(), Some(Busy));
    }
}
