//! Refusing: counted, logged and recorded, without a digit of what was refused.

use std::time::Duration;

use super::Error;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::{Caller, Standing};
use crate::vault::Vault;

/// Tells everyone who should know that a key tries too many card numbers: `what` says whether too many
/// numbers were alike, or too many were none.
pub(super) async fn refuse(
    vault: &Vault,
    caller: &Caller,
    what: &'static str,
    retry_after: Duration,
) -> Error {
    metrics::counter!("velocity_refused_total", "what" => what).increment(1);
    tracing::warn!(
        error.kind = "velocity_exceeded",
        tenant.id = %caller.tenant.uuid,
        application.id = %caller.application,
        key.id = %caller.key,
        "a key tries too many card numbers; it is refused for a while"
    );
    let entity = match caller.standing {
        Standing::Application => EntityKind::ApplicationKey,
        Standing::Session | Standing::Unauthorized => EntityKind::Session,
    };
    let entry = Entry::of(caller, Operation::Refuse, entity, caller.key);
    match vault.audit.note(vec![entry]).await {
        Ok(()) => Error::Exceeded { retry_after },
        Err(error) => error.into(),
    }
}
