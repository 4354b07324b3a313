//! Updates the device of an app session, which apps send in a second request.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;

use super::sealed::{self, SideEffects};
use super::session::{Device, Session};
use super::state::Event;
use super::{Error, find, require_threeds};
use crate::requests::{DeviceInfo, SessionKind};
use crate::server::ThreedsServer;

/// Stores the device data of an app. Only the application that created the session may update it.
pub async fn update_device(
    server: &ThreedsServer,
    caller: &Caller,
    id: &str,
    device_info: Option<DeviceInfo>,
    template: &ResponseTemplate<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    require_threeds(caller)?;
    let session = find::load(server, caller, id).await?;
    let is_app = session.facts.device == Some(Device::App);
    let is_own = session.created_by == caller.application;
    if !is_own || session.facts.kind != SessionKind::Customer || !is_app {
        return Err(Error::NotFound);
    }
    let Ok(mut next) = session.apply(Event::DeviceReported) else {
        return Err(Error::Conflict("The session is already authenticated."));
    };
    let known = next.facts.device_info.get_or_insert_default();
    known.merge(device_info.unwrap_or_default());
    next.columns.modified_by = Some(caller.application);
    next.columns.modified_at = Some(server.clock.now().await?);
    let entry = Entry::new(
        caller,
        Operation::Update,
        EntityKind::ThreedsSession,
        next.id,
    );
    let effects = SideEffects {
        entries: vec![entry],
        response: template.render_pending(&next)?.until(next.expires_at),
    };
    match sealed::advance(server, &next, effects).await? {
        true => Ok(next),
        false => Err(Error::Conflict(
            "The session was modified concurrently; retry the request.",
        )),
    }
}
