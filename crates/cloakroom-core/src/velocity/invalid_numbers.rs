//! Counts invalid card numbers: people mistype a few, scripts that generate numbers fail often.

use std::time::Duration;

use cloakroom_platform::api::FieldError;
use cloakroom_platform::clock::Uptime;

use super::digests::{Group, client_groups};
use super::reject::reject;
use super::{Error, Velocity, store};
use crate::caller::Caller;

/// Invalid numbers that are tolerated.
pub(super) const TOLERATED: usize = 10;
/// How long each of them counts.
pub(super) const WINDOW: Duration = Duration::from_secs(10 * 60);
/// How long a key with more of them may compare no card number from that address. Valid numbers are still stored: others
/// share the address.
pub(super) const BLOCK: Duration = Duration::from_secs(10 * 60);

/// Counts the invalid card numbers of a request with a public key; rejects the request with a
/// velocity error if there were too many. Servers are not counted, and neither are other validation
/// errors.
pub async fn count_invalid_numbers(
    velocity: &Velocity,
    caller: &Caller,
    broken: &[FieldError],
) -> Result<(), Error> {
    let count = broken.iter().filter(|rule| rule.is_card_number).count();
    if count == 0 {
        return Ok(());
    }
    let keys = velocity.vault.keys.of(caller.tenant).await?;
    // One more than is tolerated has the same effect as a thousand.
    let count = count.min(TOLERATED + 1);
    let mut decision = None;
    for client in client_groups(&keys, caller) {
        let waiting = count_of_client(velocity, client, count).await;
        decision.get_or_insert(waiting);
    }
    match decision.flatten() {
        None => Ok(()),
        Some(retry_after) => Err(reject(velocity, caller, "mistakes", retry_after).await),
    }
}

/// Counts invalid numbers of a client; returns how long it is blocked.
async fn count_of_client(velocity: &Velocity, client: Group, count: usize) -> Option<Duration> {
    let shared = match &velocity.vault.redis {
        Some(redis) => {
            let environment = velocity.vault.keys.environment();
            store::count_invalid(redis, environment, client, count)
                .await
                .ok()
        }
        None => None,
    };
    // Counted in memory as well, in case Redis becomes unavailable or loses its counters.
    let own = velocity
        .memory()
        .count_invalid(client, count, Uptime::now());
    shared.flatten().max(own)
}
