//! Velocity: how many card numbers a caller may try before it looks like guessing.
//!
//! Fingerprints and deduplication tell whether two card numbers are equal, and a token shows the first
//! and last digits of its own: whoever may ask without end finds the digits between. So different
//! numbers that agree in their first six and last four digits are counted ([`admit`]), and so are
//! numbers of public keys that are no card numbers at all ([`notice_refused`]).
//!
//! Nodes count together through Redis (`store`), and ask it once for requests that come together. Each
//! also remembers what it let through itself (`memory`), which decides when Redis is away or there is none.

mod admit;
mod api;
mod memory;
mod notice;
mod refuse;
mod sighting;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use self::admit::admit;
use self::memory::Memory;
pub use self::notice::notice_refused;
use self::store::Admitting;
use crate::config::Config;
use crate::convoy::Convoy;
use crate::storage::Redis;
use crate::{audit, keys};

/// The card numbers that were tried, as far as they count.
pub struct Velocity {
    /// What all nodes count together.
    shared: Option<Convoy<Admitting>>,
    memory: Mutex<Memory>,
}

impl Velocity {
    pub fn open(config: &Config, redis: Option<&Arc<Redis>>) -> Self {
        let environment = config.vault.environment.as_str();
        let patience = config.database.acquire_timeout;
        let admitting = |redis| Admitting::in_convoy(redis, environment, patience);
        Self {
            shared: redis.map(admitting),
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("too many card numbers were tried")]
    Exceeded { retry_after: Duration },
    #[error(transparent)]
    Unrecorded(#[from] audit::Unrecorded),
    #[error(transparent)]
    Keys(#[from] keys::Error),
}
