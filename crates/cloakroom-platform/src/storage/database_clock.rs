//! The database's clock, estimated locally. All nodes decide by it, so their own clocks do not matter.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Db, Error, statements};
use crate::clock::Uptime;

/// A sample is accurate enough if its round trip took at most this long; otherwise up to `SAMPLES_MAX` samples are
/// taken.
const ROUND_TRIP_GOAL: Duration = Duration::from_millis(1);
const SAMPLES_MAX: usize = 10;

statements! {
    NOW: "storage::now" =
        "select clock_timestamp()";
}

pub struct DatabaseClock {
    db: Db,
    sample: Mutex<Option<Sample>>,
    /// Added to every reading, in seconds.
    offset: AtomicI64,
    /// The only time that a test reads from this clock.
    frozen: Mutex<Option<Timestamp>>,
}

/// One reading of the database's clock.
#[derive(Clone, Copy)]
struct Sample {
    requested_at: Uptime,
    round_trip: Duration,
    time: Timestamp,
}

impl DatabaseClock {
    pub fn new(db: Db) -> Self {
        Self {
            db,
            sample: Mutex::default(),
            offset: AtomicI64::new(0),
            frozen: Mutex::default(),
        }
    }

    /// Stops this clock at a time, or starts it again, for tests of rows that are bound to the time of their creation.
    #[doc(hidden)]
    pub fn freeze(&self, at: Option<Timestamp>) {
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = at;
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The current time with the database's precision of microseconds, without a round trip once there is a sample.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        let sample = *self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        match sample {
            Some(sample) => Ok(self.shifted(sample.now())),
            // A frozen clock has no sample, so that reading a running one costs nothing more.
            None => Box::pin(self.synchronize()).await,
        }
    }

    /// Re-samples until the round trip is short: events at different nodes are ordered by this clock, and its error is
    /// at most half of the round trip.
    pub async fn synchronize(&self) -> Result<Timestamp, Error> {
        let frozen = *self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = frozen {
            return Ok(at);
        }
        let mut sample = Sample::take(&self.db).await?;
        for _ in 1..SAMPLES_MAX {
            if sample.round_trip <= ROUND_TRIP_GOAL {
                break;
            }
            let next = Sample::take(&self.db).await?;
            if next.round_trip < sample.round_trip {
                sample = next;
            }
        }
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner) = Some(sample);
        Ok(self.shifted(sample.now()))
    }

    /// Moves the clock of this process relative to the database's, for tests of what happens at midnight.
    pub fn set_offset(&self, seconds: i64) {
        self.offset.store(seconds, Ordering::Relaxed);
    }

    fn shifted(&self, at: Timestamp) -> Timestamp {
        match self.offset.load(Ordering::Relaxed) {
            0 => at,
            seconds => at
                .saturating_add(SignedDuration::from_secs(seconds))
                .unwrap_or(at),
        }
    }
}

impl Sample {
    async fn take(db: &Db) -> Result<Self, Error> {
        let requested_at = Uptime::now();
        let row = db.read_optional(&NOW, &[]).await?;
        let time = row.map(|row| row.get(0)).ok_or(Error::TooSlow(NOW.name))?;
        Ok(Self {
            requested_at,
            round_trip: requested_at.until(Uptime::now()),
            time,
        })
    }

    /// Assumes that the database read its clock halfway through the round trip.
    fn now(self) -> Timestamp {
        let then = self.requested_at + self.round_trip / 2;
        truncate_to_microseconds(self.time + then.until(Uptime::now()))
    }
}

/// PostgreSQL's precision.
fn truncate_to_microseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
