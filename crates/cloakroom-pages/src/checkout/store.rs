//! SQL statements for checkout sessions.

use std::time::Duration;

use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_core::keys::ResealedPage;
use cloakroom_core::{fenced, replace_sealed, sealed_page};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::session::{SessionColumns, State};

/// A session as stored. The columns are `None` if the row is invalid.
pub(super) struct StoredSession {
    pub columns: Option<SessionColumns>,
    pub sealed: Vec<u8>,
}

/// Columns in the order that `StoredSession::read` expects.
macro_rules! columns {
    () => {
        "tenant_id, session_id, row_version, state, page_digest, created_by, created_at, expires_at, sealed"
    };
}

statements! {
    INSERT: "checkout::insert" = concat!(
        "with fresh as (
            insert into checkout_session
                (", columns!(), ")
            values ($1, $2, $3, $4, $5, $6, $7, $8, ", fenced!("$1", "$9"), ")
            returning true
        ), ", audited!("fresh", entries = "$10", responses = "$11", events = "$12"), "
        select true
        from fresh");
    FIND: "checkout::find" = concat!(
        "select ", columns!(), ", expires_at <= now()
        from checkout_session
        where tenant_id = $1
          and session_id = $2");
    // Not limited to a tenant: the key of the page determines the tenant.
    FIND_BY_PAGE: "checkout::find_by_page" = concat!(
        "select ", columns!(), ", expires_at <= now()
        from checkout_session
        where page_digest = $1");
    COMPLETE: "checkout::complete" = concat!(
        "update checkout_session
        set row_version = $3,
            state = $4,
            sealed = ", fenced!("$1", "$5"), "
        where tenant_id = $1
          and session_id = $2
          and row_version = $3 - 1
          and expires_at > now()
        returning true");
    LIST_SEALED: "checkout::list_sealed" = sealed_page!(
        "checkout_session", "session_id", concat!(columns!(), ", expires_at <= now()"));
    REPLACE_SEALED: "checkout::replace_sealed" = replace_sealed!("checkout_session", "session_id");
    // Oldest expiry first. Nodes that sweep concurrently skip each other's rows.
    SWEEP: "checkout::sweep" =
        "with due as (
            select tenant_id, session_id
            from checkout_session
            where expires_at <= now() - make_interval(secs => $2)
            order by expires_at
            limit $1
            for update skip locked
        )
        delete from checkout_session
        using due
        where checkout_session.tenant_id = due.tenant_id
          and checkout_session.session_id = due.session_id
        returning true";
}

pub(super) async fn insert(
    change: AuditedStatement<'_>,
    columns: &SessionColumns,
    sealed: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &columns.tenant_number,
        &columns.id,
        &columns.version,
        &(columns.state as i16),
        &columns.page_digest,
        &columns.created_by,
        &columns.created_at,
        &columns.expires_at,
        &sealed,
    ];
    change.run(&INSERT, params).await?;
    Ok(())
}

pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredSession>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(StoredSession::read))
}

pub(super) async fn find_by_page(
    db: &Db,
    page_digest: &[u8],
) -> Result<Option<(i32, StoredSession)>, Error> {
    let row = db.read_optional(&FIND_BY_PAGE, &[&page_digest]).await?;
    Ok(row
        .as_ref()
        .map(|row| (row.get(0), StoredSession::read(row))))
}

/// Completes an open session; false if it was completed or expired meanwhile.
pub(super) async fn complete(
    transaction: &Transaction,
    columns: &SessionColumns,
    sealed: &[u8],
) -> Result<bool, Error> {
    let params: Params<'_> = &[
        &columns.tenant_number,
        &columns.id,
        &columns.version,
        &(columns.state as i16),
        &sealed,
    ];
    let rows = transaction.run(&COMPLETE, params).await?;
    Ok(!rows.is_empty())
}

/// Lists up to `limit` sessions after an id, also expired ones.
pub(super) async fn list_sealed(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, StoredSession)>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_SEALED, params).await?;
    let listed = |row: &Row| (row.get(1), StoredSession::read(row));
    Ok(rows.iter().map(listed).collect())
}

pub(super) async fn replace_sealed(
    db: &Db,
    tenant: TenantId,
    page: ResealedPage,
) -> Result<ResealedPage, Error> {
    page.write(db, &REPLACE_SEALED, tenant).await
}

/// Deletes up to `limit` sessions of all tenants that expired at least `retention` ago.
pub(super) async fn sweep(db: &Db, limit: i64, retention: Duration) -> Result<u64, Error> {
    let rows = db
        .write(&SWEEP, &[&limit, &retention.as_secs_f64()])
        .await?;
    Ok(rows.len() as u64)
}

impl StoredSession {
    fn read(row: &Row) -> Self {
        let columns = State::from_number(row.get(3)).map(|state| SessionColumns {
            tenant_number: row.get(0),
            id: row.get(1),
            version: row.get(2),
            state,
            page_digest: row.get(4),
            created_by: row.get(5),
            created_at: row.get(6),
            expires_at: row.get(7),
            is_past_expiry: row.get(9),
        });
        Self {
            columns,
            sealed: row.get(8),
        }
    }
}
