//! Retention of sessions and of the sensitive data in them, and timeouts of pending transitions.

use std::time::Duration;

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_platform::config::Config;
use cloakroom_platform::storage;
use jiff::Timestamp;
use serde_json::Map;
use uuid::Uuid;

use super::sealed::{self, SideEffects};
use super::session::{Facts, Session};
use super::state::{Event, State};
use super::{Error, receive, store};
use crate::server::ThreedsServer;

const BATCH: i64 = 500;

impl Session {
    /// Starts the retention of a session that is finished or waits for a challenge.
    pub(super) fn start_retention(&mut self, config: &Config, now: Timestamp) {
        let end = |retention: Duration| now.checked_add(retention).ok();
        // The session must not expire before its result is due.
        self.columns.expires_at = end(config.threeds.session_retention).max(self.due_at);
        self.start_detail_retention(config, now);
    }

    /// Starts the retention of device data and authentication values.
    pub(super) fn start_detail_retention(&mut self, config: &Config, now: Timestamp) {
        self.columns.details_until = now.checked_add(config.threeds.detail_retention).ok();
    }
}

impl Facts {
    /// Removes data with the short retention. IDs and statuses stay.
    pub(super) fn remove_details(&mut self) {
        self.device_info = None;
        self.refusal_group = None;
        if let Some(ares) = &mut self.ares {
            ares.authentication_value = None;
            ares.acs_signed_content = None;
            ares.cardholder_info = None;
            ares.broad_info = None;
            ares.message_extension = None;
        }
        if let Some(result) = &mut self.result {
            result.authentication_value = None;
            result.message_extension = None;
        }
        if let Some(hosted) = &mut self.hosted {
            hosted.authentication_request = Map::new();
            hosted.nonce = None;
        }
    }
}

/// Deletes expired sessions, and removes the details of others that are past their retention. Returns the number of
/// sessions deleted or changed.
///
/// Reads hide expired data immediately; the sweep frees its storage.
pub async fn sweep(server: &ThreedsServer) -> Result<u64, storage::Error> {
    let mut swept = 0;
    loop {
        let batch = delete_expired(server).await?;
        swept += batch;
        if batch < BATCH.unsigned_abs() {
            break;
        }
    }
    loop {
        let batch = remove_details(server).await?;
        swept += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(swept);
        }
    }
}

/// Deletes a batch of expired sessions, with audit log entries.
async fn delete_expired(server: &ThreedsServer) -> Result<u64, storage::Error> {
    let transaction = audit::begin(&server.audit).await?;
    let deleted = store::sweep(&transaction, BATCH).await?;
    if deleted.is_empty() {
        transaction.roll_back().await;
        return Ok(0);
    }
    let entry = |(tenant, id): &(i32, Uuid)| {
        Entry::by_system(*tenant, Operation::Expire, EntityKind::ThreedsSession, *id)
    };
    let entries: Vec<Entry> = deleted.iter().map(entry).collect();
    transaction.commit(&entries).await?;
    Ok(deleted.len() as u64)
}

async fn remove_details(server: &ThreedsServer) -> Result<u64, storage::Error> {
    let sessions = storage_only(sealed::find_past_retention(server, BATCH).await)?;
    let sessions = sessions.unwrap_or_default();
    if sessions.is_empty() {
        return Ok(0);
    }
    let now = server.clock.now().await?;
    let mut removed = 0;
    for session in sessions {
        let Ok(mut next) = session.apply(Event::DetailsRemoved) else {
            continue;
        };
        let is_due = session.details_until.is_some();
        if next.expires_at.is_none() {
            // Finished by a release without retention.
            next.start_retention(&server.config, now);
        }
        if is_due {
            next.facts.remove_details();
            next.columns.details_until = None;
        }
        let entry = Entry::by_system(
            next.tenant.number,
            Operation::Expire,
            EntityKind::ThreedsSession,
            next.id,
        );
        let written = sealed::advance(server, &next, SideEffects::audit_only(vec![entry])).await;
        if storage_only(written)? == Some(true) {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns only database errors. A session that cannot be encrypted must not stop the others.
fn storage_only<T>(result: Result<T, Error>) -> Result<Option<T>, storage::Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Storage(error)) => Err(error),
        Err(error) => {
            sealed::count_unreadable(&error);
            Ok(None)
        }
    }
}

/// Times out overdue sessions: authentications whose node stopped, and decoupled authentications.
pub async fn time_out_overdue(server: &ThreedsServer) -> Result<usize, Error> {
    let overdue = sealed::find_overdue(server, BATCH).await?;
    let mut count = 0;
    for session in overdue {
        if time_out(server, &session).await? {
            count += 1;
        }
    }
    Ok(count)
}

/// Times out one session; returns false if another node did.
async fn time_out(server: &ThreedsServer, session: &Session) -> Result<bool, Error> {
    // A vendor does not send results, so one may be available there.
    if session.state() == State::Decoupled
        && let Ok(fetched) = receive::fetch_result(server, session.clone()).await
        && fetched.state() != State::Decoupled
    {
        return Ok(true);
    }
    let event = match session.state() {
        State::Decoupled => Event::DecoupledTimedOut,
        _ => Event::OutcomeLost,
    };
    let Ok(mut next) = session.apply(event) else {
        return Ok(false);
    };
    next.facts.decoupled_timed_out = event == Event::DecoupledTimedOut;
    let now = server.clock.now().await?;
    next.columns.due_at = None;
    next.columns.modified_at = Some(now);
    next.start_retention(&server.config, now);
    let entry = Entry::by_system(
        next.tenant.number,
        Operation::Expire,
        EntityKind::ThreedsSession,
        next.id,
    );
    let effects = SideEffects::audit_only(vec![entry]);
    sealed::advance(server, &next, effects).await
}
