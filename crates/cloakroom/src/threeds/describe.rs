//! Telling a session the app that the cardholder uses, as apps do in a second request.

use super::session::{Device, Session};
use super::state::Event;
use super::store::{self, Told};
use super::{Error, find, require_offer};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::threeds_requests::{DeviceInfo, SessionKind};
use crate::vault::Vault;

/// Takes over what an app tells of itself. Only the application that created the session may.
pub async fn describe(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    device_info: Option<DeviceInfo>,
    reply: &Reply<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    require_offer(caller)?;
    let session = find::open(vault, caller, id).await?;
    let is_app = session.facts.device == Some(Device::App);
    let is_own = session.created_by == caller.application;
    if !is_own || session.facts.kind != SessionKind::Customer || !is_app {
        return Err(Error::NotFound);
    }
    let Ok(mut next) = session.step(Event::DeviceTold) else {
        return Err(Error::Conflict("The session is authenticated already."));
    };
    let known = next.facts.device_info.get_or_insert_default();
    known.merge(device_info.unwrap_or_default());
    next.standing.modified_by = Some(caller.application);
    next.standing.modified_at = Some(vault.audit.now().await?);
    let entry = Entry::of(
        caller,
        Operation::Update,
        EntityKind::ThreedsSession,
        next.id,
    );
    let told = Told {
        entries: vec![entry],
        kept: reply.keep(&next)?.until(next.expires_at),
    };
    match store::advance(vault, &next, told).await? {
        true => Ok(next),
        false => Err(Error::Conflict("The session changed at the same moment.")),
    }
}
