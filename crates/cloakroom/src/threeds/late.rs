//! What happens to sessions by themselves: they expire, and steps that are awaited come too late.

use super::session::Session;
use super::state::{Event, State};
use super::store::{self, Told};
use super::{Error, receive};
use crate::audit::{EntityKind, Entry, Operation};
use crate::storage;
use crate::vault::Vault;

const BATCH: i64 = 500;

/// Removes sessions that expired before anything was authenticated.
pub async fn sweep(vault: &Vault) -> Result<u64, storage::Error> {
    let mut removed = 0;
    loop {
        let batch = store::sweep(vault, BATCH).await?;
        removed += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(removed);
        }
    }
}

/// Ends what is overdue: authentications whose node is gone, and decoupled ones whose time is over.
pub async fn settle_late(vault: &Vault) -> Result<usize, Error> {
    let late = store::find_late(vault, BATCH).await?;
    let mut settled = 0;
    for session in late {
        if settle(vault, &session).await? {
            settled += 1;
        }
    }
    Ok(settled)
}

/// Whether it was this node that did it.
async fn settle(vault: &Vault, session: &Session) -> Result<bool, Error> {
    // Where nobody tells results by himself, one may be waiting there.
    if session.state() == State::Decoupled
        && let Ok(asked) = receive::ask(vault, session.clone()).await
        && asked.state() != State::Decoupled
    {
        return Ok(true);
    }
    let event = match session.state() {
        State::Decoupled => Event::TimeRanOut,
        _ => Event::Lost,
    };
    let Ok(mut next) = session.step(event) else {
        return Ok(false);
    };
    next.facts.ran_out = event == Event::TimeRanOut;
    next.standing.due_at = None;
    next.standing.modified_at = Some(vault.audit.now().await?);
    let entry = Entry::by_system(
        next.tenant.number,
        Operation::Expire,
        EntityKind::ThreedsSession,
        next.id,
    );
    let told = Told::of(vec![entry]);
    store::advance(vault, &next, told).await
}
