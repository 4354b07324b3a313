//! The database's clock, as this node knows it: all nodes sign by it, whatever their own clocks say.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::chain::to_the_microsecond;
use super::store;
use crate::clock::Uptime;
use crate::storage::{Db, Error};

/// An answer that took no longer is exact enough; else the database is asked again, so often at most.
const EXACT: Duration = Duration::from_millis(1);
const HEARINGS: usize = 10;

#[derive(Default)]
pub(super) struct DatabaseClock(Mutex<Option<Heard>>);

/// What the database said.
#[derive(Clone, Copy)]
struct Heard {
    asked_at: Uptime,
    took: Duration,
    time: Timestamp,
}

impl DatabaseClock {
    /// The time, as exactly as the database keeps times, without asking it each time.
    pub(super) async fn now(&self, db: &Db) -> Result<Timestamp, Error> {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match heard {
            Some(heard) => Ok(heard.now()),
            None => Box::pin(self.hear(db)).await,
        }
    }

    /// Asks the database until an answer comes quickly: what happens at one node after the other is to be told in that
    /// order, and nodes are wrong by up to half of what the answer took.
    pub(super) async fn hear(&self, db: &Db) -> Result<Timestamp, Error> {
        let mut heard = Heard::ask(db).await?;
        for _ in 1..HEARINGS {
            if heard.took <= EXACT {
                break;
            }
            let again = Heard::ask(db).await?;
            if again.took < heard.took {
                heard = again;
            }
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
        Ok(heard.now())
    }
}

impl Heard {
    async fn ask(db: &Db) -> Result<Self, Error> {
        let asked_at = Uptime::now();
        let time = store::now(db).await?;
        Ok(Self {
            asked_at,
            took: asked_at.until(Uptime::now()),
            time,
        })
    }

    /// The database looked at its clock half-way, as far as anybody knows here.
    fn now(self) -> Timestamp {
        let then = self.asked_at + self.took / 2;
        to_the_microsecond(self.time + then.until(Uptime::now()))
    }
}
