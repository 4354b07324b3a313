//! Letting card numbers through, unless they look like guesses.

use std::time::Duration;

use cloakroom_crypto::Sensitive;

use super::Error;
use super::refuse::refuse;
use super::sighting::{Sighting, suspect};
use super::store::Asked;
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
    let asked = Asked {
        sightings: numbers
            .iter()
            .map(|number| Sighting::of(&keys, caller, number.expose()))
            .collect(),
        limit: caller.quotas.card_velocity_limit,
        suspect: suspect(&keys, caller),
    };
    let shared = match &vault.velocity.shared {
        Some(shared) => shared.join(asked.clone()).await.ok().and_then(Result::ok),
        None => None,
    };
    let now = Uptime::now();
    let wait = match shared {
        Some(None) => {
            vault.velocity.memory().remember(&asked.sightings, now);
            None
        }
        Some(wait) => wait,
        None => {
            let mut memory = vault.velocity.memory();
            let blocked = asked.suspect.and_then(|it| memory.blocked(&it, now));
            blocked.or_else(|| memory.admit(&asked.sightings, asked.limit, now))
        }
    };
    match wait {
        None => Ok(()),
        Some(retry_after) => Err(refuse(vault, caller, "numbers", retry_after).await),
    }
}
