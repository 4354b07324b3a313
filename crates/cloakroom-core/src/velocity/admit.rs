//! Admits numbers up to the velocity limit.

use std::time::Duration;

use cloakroom_platform::clock::Uptime;

use super::digests::{NumberDigests, client_groups};
use super::number::CandidateNumber;
use super::reject::reject;
use super::store::VelocityCheck;
use super::{Error, Velocity};
use crate::caller::Caller;

/// How long a number counts after it was last seen.
pub(super) const WINDOW: Duration = Duration::from_secs(60 * 60);

/// Counts the numbers of a request, all of them or none; rejects the request if one exceeds the
/// limit.
///
/// Runs before any lookup by these numbers, so that a rejection reveals nothing about stored data.
/// A number that was counted already is admitted until a number of its group is rejected.
pub async fn admit(
    velocity: &Velocity,
    caller: &Caller,
    numbers: &[CandidateNumber],
) -> Result<(), Error> {
    if numbers.is_empty() {
        return Ok(());
    }
    let keys = velocity.vault.keys.of(caller.tenant).await?;
    let check = VelocityCheck {
        numbers: numbers
            .iter()
            .flat_map(|number| NumberDigests::all(&keys, caller, number))
            .collect(),
        limit: caller.quotas.card_velocity_limit,
        client: client_groups(&keys, caller).next(),
    };
    let shared = match &velocity.shared {
        Some(shared) => shared
            .process(check.clone())
            .await
            .ok()
            .and_then(Result::ok),
        None => None,
    };
    let now = Uptime::now();
    // The node's own counts decide as well: deleting the counters in Redis admits no further number. Rejected numbers are
    // not counted, so Redis is asked first.
    let wait = shared.flatten().or_else(|| {
        let mut memory = velocity.memory();
        let blocked = check.client.and_then(|it| memory.block_remaining(&it, now));
        blocked.or_else(|| memory.admit(&check.numbers, check.limit, now))
    });
    match wait {
        None => Ok(()),
        Some(retry_after) => Err(reject(velocity, caller, "numbers", retry_after).await),
    }
}

/// Counts like [`admit`], for data that is stored whether or not it may be compared. If this returns false, the data gets
/// no fingerprint.
///
/// Rejecting the request instead would let everybody who has a public key stop a card: its visible digits are enough.
pub async fn admits(
    velocity: &Velocity,
    caller: &Caller,
    numbers: &[CandidateNumber],
) -> Result<bool, Error> {
    match admit(velocity, caller, numbers).await {
        Ok(()) => Ok(true),
        Err(Error::Exceeded { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
