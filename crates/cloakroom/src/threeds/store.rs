//! Every SQL statement about 3-D Secure sessions.

use tokio_postgres::Row;
use uuid::Uuid;

use super::Error;
use super::session::{Session, Standing};
use super::state::State;
use crate::audit::{self, EntityKind, Entry, Operation, logged, told_again};
use crate::idempotency::{Kept, replied};
use crate::ids::TenantId;
use crate::keys;
use crate::storage::{self, statements};
use crate::vault::Vault;

macro_rules! session_columns {
    () => {
        "threeds_session.tenant_id, session_id, version, state, sealed, threeds_session.created_by,
               threeds_session.created_at, threeds_session.modified_by,
               threeds_session.modified_at, expires_at, due_at"
    };
}

statements! {
    INSERT: "threeds::insert" = concat!(
        "with fresh as (
            insert into threeds_session
                (tenant_id, session_id, version, state, sealed, created_by, created_at, expires_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            on conflict do nothing
            returning true
        ), ", replied!("$10", "fresh"), ", ", logged!("$9", "fresh"), "
        select true
        from fresh");
    FIND: "threeds::find" = concat!(
        "select ", session_columns!(), "
        from threeds_session
        where tenant_id = $1
          and session_id = $2
          and (expires_at is null or expires_at > now())");
    // Issuers, directory servers and browsers know a session by its id alone.
    FIND_BY_ID: "threeds::find_by_id" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where session_id = $1
          and (expires_at is null or expires_at > now())");
    // A step counts only from the version that it was worked out from.
    ADVANCE: "threeds::advance" = concat!(
        "with stepped as (
            update threeds_session
            set version = $3,
                state = $4,
                sealed = $5,
                modified_by = $6,
                modified_at = $7,
                expires_at = $8,
                due_at = $9
            where tenant_id = $1
              and session_id = $2
              and version = $3 - 1
              and (expires_at is null or expires_at > now())
            returning true
        ), ", replied!("$11", "stepped"), ", ", logged!("$10", "stepped"), "
        select true
        from stepped");
    // Everything that expired before anything was authenticated, the longest expired first.
    SWEEP: "threeds::sweep" =
        "with due as (
            select tenant_id, session_id
            from threeds_session
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        )
        delete from threeds_session
        using due
        where threeds_session.tenant_id = due.tenant_id
          and threeds_session.session_id = due.session_id
        returning threeds_session.tenant_id, threeds_session.session_id";
    // Sessions of all tenants whose awaited step is late.
    FIND_LATE: "threeds::find_late" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where due_at <= now()
          and tenant.deleted_at is null
        order by due_at
        limit $1");
}

/// What happened in a step, besides the step itself.
pub(super) struct Told<'a> {
    pub entries: Vec<Entry>,
    pub kept: Kept<'a>,
}

impl Told<'static> {
    /// What nobody waits for an answer to.
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            kept: Kept::default(),
        }
    }
}

/// Keeps a new session; false when its id is taken.
pub(super) async fn insert(
    vault: &Vault,
    session: &Session,
    told: Told<'_>,
) -> Result<bool, Error> {
    let sealed = seal(vault, session).await?;
    let Told { entries, kept } = told;
    let kept_rows = kept.rows(&told_again(&entries))?;
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&entries);
    let written = vault
        .db
        .write(
            &INSERT,
            &[
                &session.tenant.number,
                &session.id,
                &session.version,
                &(session.state as i16),
                &sealed,
                &session.created_by,
                &session.created_at,
                &session.expires_at,
                &signed,
                &kept_rows,
            ],
        )
        .await;
    pen.settle(&written, |rows| !rows.is_empty());
    let is_new = !written?.is_empty();
    if is_new {
        kept.done();
    }
    Ok(is_new)
}

/// Takes a session one step further; false when another step was faster, or it has expired.
pub(super) async fn advance(vault: &Vault, next: &Session, told: Told<'_>) -> Result<bool, Error> {
    let sealed = seal(vault, next).await?;
    let Told { entries, kept } = told;
    let kept_rows = kept.rows(&told_again(&entries))?;
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&entries);
    let written = vault
        .db
        .write(
            &ADVANCE,
            &[
                &next.tenant.number,
                &next.id,
                &next.version,
                &(next.state as i16),
                &sealed,
                &next.modified_by,
                &next.modified_at,
                &next.expires_at,
                &next.due_at,
                &signed,
                &kept_rows,
            ],
        )
        .await;
    pen.settle(&written, |rows| !rows.is_empty());
    let is_done = !written?.is_empty();
    if is_done {
        kept.done();
    }
    Ok(is_done)
}

async fn seal(vault: &Vault, session: &Session) -> Result<Vec<u8>, Error> {
    let keys = vault.keys.of(session.tenant).await?;
    let facts = serde_json::to_vec(&session.facts).map_err(|_| keys::Error::Seal)?;
    let facts = cloakroom_crypto::Sensitive::new(facts);
    Ok(keys.seal(&session.record(), facts.expose())?)
}

/// A session of a tenant that has not expired.
pub(super) async fn find(
    vault: &Vault,
    tenant: TenantId,
    id: &Uuid,
) -> Result<Option<Session>, Error> {
    let row = vault.db.read_optional(&FIND, &[&tenant.number, id]).await?;
    match row {
        None => Ok(None),
        Some(row) => open(vault, tenant, &row).await.map(Some),
    }
}

/// A session that somebody without a key knows the id of.
pub(super) async fn find_by_id(vault: &Vault, id: &Uuid) -> Result<Option<Session>, Error> {
    match vault.db.read_optional(&FIND_BY_ID, &[id]).await? {
        None => Ok(None),
        Some(row) => open(vault, tenant_of(&row), &row).await.map(Some),
    }
}

/// Up to `limit` sessions whose awaited step is late.
pub(super) async fn find_late(vault: &Vault, limit: i64) -> Result<Vec<Session>, Error> {
    let mut late = Vec::new();
    for row in vault.db.read(&FIND_LATE, &[&limit]).await? {
        // The keys of a tenant that was deleted are gone before its rows are.
        match open(vault, tenant_of(&row), &row).await {
            Ok(session) => late.push(session),
            Err(_) => metrics::counter!("threeds_sessions_unreadable_total").increment(1),
        }
    }
    Ok(late)
}

fn tenant_of(row: &Row) -> TenantId {
    TenantId {
        number: row.get(0),
        uuid: row.get(11),
    }
}

/// Opens a row, which proves that nobody changed what its facts are bound to.
async fn open(vault: &Vault, tenant: TenantId, row: &Row) -> Result<Session, Error> {
    let state = State::from_number(row.get(3)).ok_or(keys::Error::Integrity)?;
    let sealed: Vec<u8> = row.get(4);
    let standing = Standing {
        tenant,
        id: row.get(1),
        version: row.get(2),
        state,
        created_by: row.get(5),
        created_at: row.get(6),
        modified_by: row.get(7),
        modified_at: row.get(8),
        expires_at: row.get(9),
        due_at: row.get(10),
    };
    let facts = vault.keys.open(tenant, &standing.record(), &sealed).await?;
    let facts = serde_json::from_slice(facts.expose()).map_err(|_| keys::Error::Integrity)?;
    Ok(Session { standing, facts })
}

/// Removes up to `limit` expired sessions of all tenants, and records it.
pub(super) async fn sweep(vault: &Vault, limit: i64) -> Result<u64, storage::Error> {
    let recorded = audit::begin(vault).await?;
    let rows = recorded.run(&SWEEP, &[&limit]).await?;
    if rows.is_empty() {
        recorded.roll_back().await;
        return Ok(0);
    }
    let entry = |row: &Row| {
        let (tenant, id): (i32, Uuid) = (row.get(0), row.get(1));
        Entry::by_system(tenant, Operation::Expire, EntityKind::ThreedsSession, id)
    };
    let entries: Vec<Entry> = rows.iter().map(entry).collect();
    recorded.commit(&entries).await?;
    Ok(rows.len() as u64)
}
