//! Letting card numbers through, unless they look like guesses.

use std::time::Duration;

use cloakroom_crypto::Sensitive;

use super::refuse::refuse;
use super::sighting::{Sighting, suspect};
use super::{Error, store};
use crate::caller::Caller;
use crate::clock::Uptime;
use crate::vault::Vault;

/// How long a number counts after it was last seen.
pub(super) const WINDOW: Duration = Duration::from_secs(60 * 60);

/// Counts the card numbers of a request, all of them or none; refuses them when one is too many.
///
/// Comes before anything in the vault is looked for by them, so that a refusal tells nothing of what is
/// there. A number that was counted already is let through.
pub async fn admit(
    vault: &Vault,
    caller: &Caller,
    numbers: &[Sensitive<String>],
) -> Result<(), Error> {
    if numbers.is_empty() {
        return Ok(());
    }
    let keys = vault.keys.of(caller.tenant).await?;
    let suspect = suspect(&keys, caller);
    let sightings: Vec<Sighting> = numbers
        .iter()
        .map(|number| Sighting::of(&keys, caller, number.expose()))
        .collect();
    let limit = caller.quotas.card_velocity_limit;
    let shared = match &vault.redis {
        Some(redis) => {
            let environment = vault.keys.environment();
            store::admit(redis, environment, suspect, (&sightings, limit))
                .await
                .ok()
        }
        None => None,
    };
    let now = Uptime::now();
    let wait = match shared {
        Some(None) => {
            vault.velocity.memory().remember(&sightings, now);
            None
        }
        Some(wait) => wait,
        None => {
            let mut memory = vault.velocity.memory();
            let blocked = suspect.and_then(|suspect| memory.blocked(&suspect, now));
            blocked.or_else(|| memory.admit(&sightings, limit, now))
        }
    };
    match wait {
        None => Ok(()),
        Some(retry_after) => Err(refuse(vault, caller, "numbers", retry_after).await),
    }
}
