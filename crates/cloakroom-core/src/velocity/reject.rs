//! Records a rejection in metrics, logs and audit log, without a digit of the number.

use std::time::Duration;

use super::{Error, Velocity};
use cloakroom_platform::telemetry::catalog;

use crate::access::PrincipalKind;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;

/// Reports that a key exceeded the velocity limit and returns the error. `what` is `numbers` for
/// too many distinct numbers and `mistakes` for too many invalid ones.
pub(super) async fn reject(
    velocity: &Velocity,
    caller: &Caller,
    what: &'static str,
    retry_after: Duration,
) -> Error {
    catalog::VELOCITY_REJECTED.with([what]).increment(1);
    tracing::warn!(
        error.kind = "velocity_exceeded",
        tenant.id = %caller.tenant.uuid,
        application.id = %caller.application,
        key.id = %caller.key,
        "a key tries too many card numbers; they are not compared for a while"
    );
    let entity = match caller.kind {
        PrincipalKind::Application => EntityKind::ApplicationKey,
        PrincipalKind::Session | PrincipalKind::Unauthorized => EntityKind::Session,
    };
    let entry = Entry::new(caller, Operation::Reject, entity, caller.key);
    match velocity.vault.audit.enqueue(vec![entry]).await {
        Ok(()) => Error::Exceeded { retry_after },
        Err(error) => error.into(),
    }
}
