//! Noticing numbers that were refused: people mistype a few, machines that make numbers up miss often.

use std::time::Duration;

use super::refuse::refuse;
use super::sighting::suspect;
use super::{Error, store};
use crate::api::Broken;
use crate::caller::Caller;
use crate::clock::Uptime;
use crate::vault::Vault;

/// Refused numbers that are forgiven.
pub(super) const FORGIVEN: usize = 10;
/// How long each of them counts.
pub(super) const WINDOW: Duration = Duration::from_secs(10 * 60);
/// How long a key that had more of them sends no card number from that address.
pub(super) const BLOCK: Duration = Duration::from_secs(10 * 60);

/// Counts card numbers of a public key that broke the rules of card numbers; refuses the request for
/// that instead when there were too many. Servers are not counted, and neither is any other rule.
pub async fn notice_refused(
    vault: &Vault,
    caller: &Caller,
    broken: &[Broken],
) -> Result<(), Error> {
    let count = broken.iter().filter(|rule| rule.is_card_number).count();
    if count == 0 {
        return Ok(());
    }
    let keys = vault.keys.of(caller.tenant).await?;
    let Some(suspect) = suspect(&keys, caller) else {
        return Ok(());
    };
    // One more than is forgiven has the same effect as a thousand.
    let count = count.min(FORGIVEN + 1);
    let shared = match &vault.redis {
        Some(redis) => {
            let environment = vault.keys.environment();
            store::notice(redis, environment, suspect, count).await.ok()
        }
        None => None,
    };
    // Remembered here in any case, in case that Redis goes away.
    let own = vault
        .velocity
        .memory()
        .notice(suspect, count, Uptime::now());
    match shared.unwrap_or(own) {
        None => Ok(()),
        Some(retry_after) => Err(refuse(vault, caller, "mistakes", retry_after).await),
    }
}
