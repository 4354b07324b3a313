//! Reads sessions and challenge results.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use uuid::Uuid;

use super::session::Session;
use super::state::State;
use super::{Error, receive, require_threeds, sealed};
use crate::networks::{ErrorSource, NetworkFailure};
use crate::server::ThreedsServer;

/// Finds a session of the caller's tenant that has not expired.
pub async fn find(server: &ThreedsServer, caller: &Caller, id: &str) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionRead)?;
    require_threeds(caller)?;
    let session = load(server, caller, id).await?;
    record_read(server, caller, &session, None).await?;
    Ok(session)
}

/// Finds a session whose outcome is known.
pub async fn find_result(
    server: &ThreedsServer,
    caller: &Caller,
    id: &str,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    require_threeds(caller)?;
    let mut session = load(server, caller, id).await?;
    if matches!(session.state(), State::Challenge | State::Decoupled) {
        session = receive::fetch_result(server, session).await?;
    }
    if session.state() != State::Final {
        let message = "The result has not been received.";
        return Err(Error::Network {
            session: Some(session.id),
            failure: NetworkFailure::new(404, ErrorSource::ThreedsServer, message),
        });
    }
    let event = session.event(EventKind::ThreedsResultRetrieved);
    record_read(server, caller, &session, Some(event)).await?;
    Ok(session)
}

/// Logs a read before the session is returned: an authentication value is as sensitive as a card number.
async fn record_read(
    server: &ThreedsServer,
    caller: &Caller,
    session: &Session,
    event: Option<Event>,
) -> Result<(), Error> {
    let entry = Entry::new(
        caller,
        Operation::Read,
        EntityKind::ThreedsSession,
        session.id,
    );
    let mut entry = entry.with_outcome(read_outcome(session));
    if let Some(event) = event {
        entry = entry.with_event(event);
    }
    Ok(server.audit.record_reads(vec![entry]).await?)
}

/// Audit outcome of a read: `Revealed` if the session has an authentication value.
pub(super) fn read_outcome(session: &Session) -> Outcome {
    match session.authentication_value() {
        Some(_) => Outcome::Revealed,
        None => Outcome::Done,
    }
}

pub async fn load(server: &ThreedsServer, caller: &Caller, id: &str) -> Result<Session, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let found = sealed::find(server, caller.tenant, &id).await?;
    found.ok_or(Error::NotFound)
}

/// Reloads a session after a concurrent modification.
pub(super) async fn reload(server: &ThreedsServer, session: &Session) -> Result<Session, Error> {
    let found = sealed::find(server, session.tenant, &session.id).await?;
    found.ok_or(Error::NotFound)
}
