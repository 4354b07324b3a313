//! SQL statements for 3-D Secure sessions.

use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_core::keys::ResealedPage;
use cloakroom_core::{fenced, replace_sealed, sealed_page};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::session::SessionColumns;
use super::state::State;

macro_rules! session_columns {
    () => {
        "threeds_session.tenant_id, session_id, version, state, sealed, threeds_session.created_by,
               threeds_session.created_at, threeds_session.modified_by,
               threeds_session.modified_at, expires_at, due_at, details_until,
               coalesce(details_until <= now(), false)"
    };
}

statements! {
    INSERT: "threeds::insert" = concat!(
        "with fresh as (
            insert into threeds_session
                (tenant_id, session_id, version, state, sealed, created_by, created_at, expires_at,
                 details_until, token_id)
            values ($1, $2, $3, $4, ", fenced!("$1", "$5"), ", $6, $7, $8, $9, $10)
            on conflict do nothing
            returning true
        ), ", audited!("fresh", entries = "$11", responses = "$12", events = "$13"), "
        select true
        from fresh");
    FIND: "threeds::find" = concat!(
        "select ", session_columns!(), "
        from threeds_session
        where tenant_id = $1
          and session_id = $2
          and (expires_at is null or expires_at > now())");
    // Issuers, directory servers and browsers know only the session ID.
    FIND_BY_ID: "threeds::find_by_id" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where session_id = $1
          and (expires_at is null or expires_at > now())");
    // Optimistic locking: a transition applies only to the version it was computed from.
    ADVANCE: "threeds::advance" = concat!(
        "with stepped as (
            update threeds_session
            set version = $3,
                state = $4,
                sealed = ", fenced!("$1", "$5"), ",
                modified_by = $6,
                modified_at = $7,
                expires_at = $8,
                due_at = $9,
                details_until = $10,
                token_id = $11
            where tenant_id = $1
              and session_id = $2
              and version = $3 - 1
              and (expires_at is null or expires_at > now())
            returning true
        ), ", audited!("stepped", entries = "$12", responses = "$13", events = "$14"), "
        select true
        from stepped");
    LIST_SEALED: "threeds::list_sealed" =
        sealed_page!("threeds_session", "session_id", session_columns!());
    REPLACE_SEALED: "threeds::replace_sealed" = replace_sealed!("threeds_session", "session_id");
    // Expired sessions, oldest first.
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
    // Sessions of all tenants whose pending transition is overdue.
    FIND_OVERDUE: "threeds::find_late" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where due_at <= now()
          and tenant.deleted_at is null
        order by due_at
        limit $1");
    // Sessions of all tenants whose details are past their retention.
    FIND_EXPIRED_DETAILS: "threeds::find_spent" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where details_until <= now()
          and tenant.deleted_at is null
        order by details_until
        limit $1");
    // Sessions finished by releases without retention.
    FIND_WITHOUT_EXPIRY: "threeds::find_endless" = concat!(
        "select ", session_columns!(), ", tenant.public_id
        from threeds_session
        join tenant on tenant.tenant_id = threeds_session.tenant_id
        where expires_at is null
          and tenant.deleted_at is null
        limit $1");
}

/// A row of `threeds_session`, whose facts are encrypted.
pub(super) struct SessionRow {
    pub columns: SessionColumns,
    pub sealed: Vec<u8>,
    /// Whether the details are past their retention. They are hidden even before they are swept.
    pub details_expired: bool,
}

impl SessionRow {
    /// Decodes `session_columns!`; `None` if the state is unknown.
    fn decode(tenant: TenantId, row: &Row) -> Option<Self> {
        Some(Self {
            columns: SessionColumns {
                tenant,
                id: row.get(1),
                version: row.get(2),
                state: State::from_number(row.get(3))?,
                created_by: row.get(5),
                created_at: row.get(6),
                modified_by: row.get(7),
                modified_at: row.get(8),
                expires_at: row.get(9),
                due_at: row.get(10),
                details_until: row.get(11),
            },
            sealed: row.get(4),
            details_expired: row.get(12),
        })
    }

    /// Decodes `session_columns!` and the tenant's id.
    fn decode_with_tenant(row: &Row) -> Option<Self> {
        let tenant = TenantId {
            number: row.get(0),
            uuid: row.get(13),
        };
        Self::decode(tenant, row)
    }
}

/// A session to write, with its encrypted facts.
pub(super) struct SealedSession<'a> {
    pub columns: &'a SessionColumns,
    pub sealed: Vec<u8>,
    /// Key of the token whose deletion deletes the session.
    pub token: Option<Uuid>,
}

/// Inserts a new session; returns false if its ID exists.
pub(super) async fn insert(
    change: AuditedStatement<'_>,
    session: &SealedSession<'_>,
) -> Result<bool, Error> {
    let columns = session.columns;
    let params: Params<'_> = &[
        &columns.tenant.number,
        &columns.id,
        &columns.version,
        &(columns.state as i16),
        &session.sealed,
        &columns.created_by,
        &columns.created_at,
        &columns.expires_at,
        &columns.details_until,
        &session.token,
    ];
    Ok(!change.run(&INSERT, params).await?.is_empty())
}

/// Stores a transition; returns false if the session was modified concurrently or has expired.
pub(super) async fn advance(
    change: AuditedStatement<'_>,
    next: &SealedSession<'_>,
) -> Result<bool, Error> {
    let columns = next.columns;
    let params: Params<'_> = &[
        &columns.tenant.number,
        &columns.id,
        &columns.version,
        &(columns.state as i16),
        &next.sealed,
        &columns.modified_by,
        &columns.modified_at,
        &columns.expires_at,
        &columns.due_at,
        &columns.details_until,
        &next.token,
    ];
    Ok(!change.run(&ADVANCE, params).await?.is_empty())
}

/// A row that was found; `None` if it is invalid.
pub(super) type FoundRow = Option<SessionRow>;

/// Finds a session of a tenant that has not expired.
pub(super) async fn find(db: &Db, tenant: TenantId, id: &Uuid) -> Result<Option<FoundRow>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, id]).await?;
    Ok(row.map(|row| SessionRow::decode(tenant, &row)))
}

/// Finds a session by its ID alone, for parties without an API key.
pub(super) async fn find_by_id(db: &Db, id: &Uuid) -> Result<Option<FoundRow>, Error> {
    let row = db.read_optional(&FIND_BY_ID, &[id]).await?;
    Ok(row.as_ref().map(SessionRow::decode_with_tenant))
}

/// Finds up to `limit` sessions whose pending transition is overdue.
pub(super) async fn find_overdue(db: &Db, limit: i64) -> Result<Vec<FoundRow>, Error> {
    let rows = db.read(&FIND_OVERDUE, &[&limit]).await?;
    Ok(rows.iter().map(SessionRow::decode_with_tenant).collect())
}

/// Finds up to `limit` sessions with details past their retention, or else without an expiry.
pub(super) async fn find_past_retention(db: &Db, limit: i64) -> Result<Vec<FoundRow>, Error> {
    let spent = db.read(&FIND_EXPIRED_DETAILS, &[&limit]).await?;
    let rows = match spent.is_empty() {
        true => db.read(&FIND_WITHOUT_EXPIRY, &[&limit]).await?,
        false => spent,
    };
    Ok(rows.iter().map(SessionRow::decode_with_tenant).collect())
}

/// Lists up to `limit` sessions after an id, also expired ones.
pub(super) async fn list_sealed(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, FoundRow)>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_SEALED, params).await?;
    let listed = |row: &Row| (row.get(1), SessionRow::decode(tenant, row));
    Ok(rows.iter().map(listed).collect())
}

pub(super) async fn replace_sealed(
    db: &Db,
    tenant: TenantId,
    page: ResealedPage,
) -> Result<ResealedPage, Error> {
    page.write(db, &REPLACE_SEALED, tenant).await
}

/// Deletes up to `limit` expired sessions of all tenants; returns their tenant numbers and IDs.
pub(super) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<(i32, Uuid)>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
