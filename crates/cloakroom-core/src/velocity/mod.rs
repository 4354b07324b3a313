//! Velocity limits against enumeration of card numbers and other identifiers.
//!
//! Fingerprints, deduplication and searches reveal whether two numbers are equal, and a token shows
//! the first and last digits of its number: without a limit, the digits between could be
//! enumerated. So distinct card numbers with the same first six and last four digits are counted,
//! and distinct bank account, routing, social security and employer identification numbers with the
//! same last four ([`admit`]). Ten are admitted per hour, more only where ordinary traffic would
//! reach ten (`allowance`). Beyond that, a search is rejected, and what is stored gets no fingerprint
//! ([`admits`]). Invalid card numbers from public keys are counted by [`count_invalid_numbers`].
//!
//! Nodes share counters in Redis (`store`), with concurrent requests batched into one call. Each
//! node also counts the numbers that it admitted itself (`memory`). A number is rejected if either
//! rejects it, so deleting counters in Redis admits no more than a node without Redis would.

mod admit;
mod allowance;
mod api;
mod digests;
mod invalid_numbers;
mod memory;
mod number;
mod reject;
mod store;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloakroom_platform::batching::Batcher;

pub use self::admit::{admit, admits};
pub use self::invalid_numbers::count_invalid_numbers;
use self::memory::Memory;
pub use self::number::CandidateNumber;
use self::store::RedisVelocity;
use crate::vault::Vault;
use crate::{audit, keys};

/// The numbers that were sent recently.
pub struct Velocity {
    vault: Vault,
    /// Counters shared by all nodes.
    shared: Option<Batcher<RedisVelocity>>,
    memory: Mutex<Memory>,
}

impl Velocity {
    pub fn new(vault: &Vault) -> Self {
        let environment = vault.config.vault.environment.as_str();
        let queue_timeout = vault.config.database.acquire_timeout;
        let batched = |redis| RedisVelocity::batched(redis, environment, queue_timeout);
        Self {
            vault: vault.clone(),
            shared: vault.redis.as_ref().map(batched),
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("velocity limit for card numbers exceeded")]
    Exceeded { retry_after: Duration },
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
}
