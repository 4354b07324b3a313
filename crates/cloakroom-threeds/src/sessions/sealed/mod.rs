//! Encrypts sessions for the store, and decrypts its rows, which verifies the columns that their facts are bound to.

mod reseal;

use cloakroom_core::audit::{self, Entry};
use cloakroom_core::idempotency::PendingResponse;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use cloakroom_tokens::attributes::TokenId;
use uuid::Uuid;

pub use self::reseal::reseal;
use crate::server::ThreedsServer;
use crate::sessions::Error;
use crate::sessions::session::{CardReference, Facts, Session};
use crate::sessions::store::{self, FoundRow, SealedSession};

/// Written in the same transaction as a transition: audit log entries and the response for the idempotency key.
pub(in crate::sessions) struct SideEffects<'a> {
    pub entries: Vec<Entry>,
    pub response: PendingResponse<'a>,
}

impl SideEffects<'static> {
    /// For transitions without an idempotency key.
    pub(in crate::sessions) fn audit_only(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            response: PendingResponse::default(),
        }
    }
}

/// Inserts a new session; returns false if its ID exists.
pub(in crate::sessions) async fn insert(
    server: &ThreedsServer,
    session: &Session,
    effects: SideEffects<'_>,
) -> Result<bool, Error> {
    let SideEffects { entries, response } = effects;
    let sealed = seal(server, session).await?;
    let change = audit::begin_statement(&server.audit, &entries, response.clone()).await?;
    match store::insert(change, &sealed).await {
        Err(storage::Error::StaleKey) => {
            let sealed = seal_again(server, session, &response).await?;
            let change = audit::begin_statement(&server.audit, &entries, response).await?;
            Ok(store::insert(change, &sealed).await?)
        }
        inserted => Ok(inserted?),
    }
}

/// Commits a transition; returns false if the session was modified concurrently or has expired.
pub(in crate::sessions) async fn advance(
    server: &ThreedsServer,
    next: &Session,
    effects: SideEffects<'_>,
) -> Result<bool, Error> {
    let SideEffects { entries, response } = effects;
    let sealed = seal(server, next).await?;
    let change = audit::begin_statement(&server.audit, &entries, response.clone()).await?;
    match store::advance(change, &sealed).await {
        Err(storage::Error::StaleKey) => {
            let sealed = seal_again(server, next, &response).await?;
            let change = audit::begin_statement(&server.audit, &entries, response).await?;
            Ok(store::advance(change, &sealed).await?)
        }
        advanced => Ok(advanced?),
    }
}

/// Seals with current keys, after the database rejected a value because its key was replaced.
async fn seal_again<'a>(
    server: &ThreedsServer,
    session: &'a Session,
    response: &PendingResponse<'_>,
) -> Result<SealedSession<'a>, Error> {
    server.keys.replace_stale(session.tenant).await;
    response.use_keys(&server.keys.of(session.tenant).await?);
    seal(server, session).await
}

async fn seal<'a>(
    server: &ThreedsServer,
    session: &'a Session,
) -> Result<SealedSession<'a>, Error> {
    let keys = server.keys.of(session.tenant).await?;
    let facts = serde_json::to_vec(&session.facts).map_err(|_| keys::Error::Seal)?;
    let facts = Sensitive::new(facts);
    Ok(SealedSession {
        columns: &session.columns,
        sealed: keys.seal(&session.record(), facts.expose())?,
        token: match &session.facts.card {
            CardReference::Token(id) => Some(*TokenId::of(session.tenant, id).key()),
            CardReference::TokenIntent(_) => None,
        },
    })
}

/// Finds a session of a tenant that has not expired.
pub(in crate::sessions) async fn find(
    server: &ThreedsServer,
    tenant: TenantId,
    id: &Uuid,
) -> Result<Option<Session>, Error> {
    match store::find(&server.db, tenant, id).await? {
        None => Ok(None),
        Some(row) => open(server, row).await.map(Some),
    }
}

/// Finds a session by its ID alone, for parties without an API key.
pub(in crate::sessions) async fn find_by_id(
    server: &ThreedsServer,
    id: &Uuid,
) -> Result<Option<Session>, Error> {
    match store::find_by_id(&server.db, id).await? {
        None => Ok(None),
        Some(row) => open(server, row).await.map(Some),
    }
}

/// Finds up to `limit` sessions whose pending transition is overdue.
pub(in crate::sessions) async fn find_overdue(
    server: &ThreedsServer,
    limit: i64,
) -> Result<Vec<Session>, Error> {
    Ok(open_all(server, store::find_overdue(&server.db, limit).await?).await)
}

/// Finds up to `limit` sessions with details past their retention, or else without an expiry.
pub(in crate::sessions) async fn find_past_retention(
    server: &ThreedsServer,
    limit: i64,
) -> Result<Vec<Session>, Error> {
    Ok(open_all(server, store::find_past_retention(&server.db, limit).await?).await)
}

async fn open_all(server: &ThreedsServer, rows: Vec<FoundRow>) -> Vec<Session> {
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows {
        // The keys of a deleted tenant are destroyed before its rows.
        match open(server, row).await {
            Ok(session) => sessions.push(session),
            Err(error) => count_unreadable(&error),
        }
    }
    sessions
}

/// Counts a session that a job cannot read. During an outage of the key provider, no session can be read.
pub(in crate::sessions) fn count_unreadable(error: &Error) {
    catalog::THREEDS_SESSIONS_UNREADABLE.increment(1);
    if matches!(error, Error::Keys(keys::Error::Integrity)) {
        catalog::INTEGRITY_ERRORS.increment(1);
        tracing::error!(
            error.kind = "integrity_error",
            "a 3-D Secure session was changed outside the vault"
        );
    }
}

async fn open(server: &ThreedsServer, row: FoundRow) -> Result<Session, Error> {
    let row = row.ok_or(keys::Error::Integrity)?;
    let record = row.columns.record();
    let facts = server
        .keys
        .open(row.columns.tenant, &record, &row.sealed)
        .await?;
    let mut facts: Facts =
        serde_json::from_slice(facts.expose()).map_err(|_| keys::Error::Integrity)?;
    if row.details_expired {
        facts.remove_details();
    }
    Ok(Session {
        columns: row.columns,
        facts,
    })
}
