//! Reading a session, and what became of its challenge.

use uuid::Uuid;

use super::receive;
use super::session::Session;
use super::state::State;
use super::{Error, require_offer, store};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation, Outcome};
use crate::caller::Caller;
use crate::card_networks::{Party, Trouble};
use crate::vault::Vault;

/// Finds a session by id; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionRead)?;
    require_offer(caller)?;
    let session = open(vault, caller, id).await?;
    record_read(vault, caller, &session).await?;
    Ok(session)
}

/// Finds a session whose outcome is known.
pub async fn find_result(vault: &Vault, caller: &Caller, id: &str) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    require_offer(caller)?;
    let mut session = open(vault, caller, id).await?;
    if matches!(session.state(), State::Challenge | State::Decoupled) {
        session = receive::ask(vault, session).await?;
    }
    if session.state() != State::Final {
        let message = "The result has not been received.";
        return Err(Error::Trouble {
            session: Some(session.id),
            trouble: Trouble::new(404, Party::ThreedsServer, message),
        });
    }
    record_read(vault, caller, &session).await?;
    Ok(session)
}

/// The value that proves an authentication is as good as a card: it leaves only after it is recorded
/// who saw it.
async fn record_read(vault: &Vault, caller: &Caller, session: &Session) -> Result<(), Error> {
    let entry = Entry::of(
        caller,
        Operation::Read,
        EntityKind::ThreedsSession,
        session.id,
    );
    let entry = entry.with_outcome(shown(session));
    Ok(vault.audit.read(vec![entry]).await?)
}

/// What whoever reads a session sees of the value.
pub(super) fn shown(session: &Session) -> Outcome {
    match session.authentication_value() {
        Some(_) => Outcome::Revealed,
        None => Outcome::Done,
    }
}

pub(crate) async fn open(vault: &Vault, caller: &Caller, id: &str) -> Result<Session, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let found = store::find(vault, caller.tenant, &id).await?;
    found.ok_or(Error::NotFound)
}

/// The session as it is now.
pub(super) async fn again(vault: &Vault, session: &Session) -> Result<Session, Error> {
    let found = store::find(vault, session.tenant, &session.id).await?;
    found.ok_or(Error::NotFound)
}
