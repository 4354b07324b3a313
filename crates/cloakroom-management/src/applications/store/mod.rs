//! SQL statements for applications; those for keys are in `keys.rs`.

mod keys;

use cloakroom_core::access::ApplicationRow;
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use self::keys::STATEMENTS as KEY_STATEMENTS;
pub(super) use self::keys::{
    StoredKey, application_of_key, count_keys, delete_key, delete_keys, insert_key, list_keys,
    list_keys_of_locked,
};
use super::Filter;

/// An application as stored; its MAC is not yet verified.
pub(super) struct StoredApplication {
    pub id: Uuid,
    pub name: String,
    pub kind: i16,
    pub grants: String,
    pub expires_at: Option<Timestamp>,
    pub row_mac: Vec<u8>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// Finds one unexpired application.
macro_rules! find {
    () => {
        "select application_id, name, kind, grants, expires_at, row_mac, created_by, created_at,
               modified_by, modified_at
        from application
        where tenant_id = $1
          and application_id = $2
          and (expires_at is null or expires_at > now())"
    };
}

/// Unexpired applications that match a filter.
macro_rules! listed {
    () => {
        "
        from application
        where tenant_id = $1
          and ($2::uuid[] is null or application_id = any($2))
          and ($3::smallint[] is null or kind = any($3))
          and (expires_at is null or expires_at > now())"
    };
}

statements! {
    // The database's clock decides whether the expiry is in the future.
    INSERT: "applications::insert" =
        "insert into application
            (tenant_id, application_id, name, kind, grants, created_by, expires_at, row_mac)
        select $1, $2, $3, $4, $5, $6, $7, $8
        where $7::timestamptz is null
           or $7 > now()
        returning created_at";
    FIND: "applications::find" = find!();
    LOCK: "applications::lock" = concat!(find!(), "\n        for update");
    COUNT: "applications::count" = concat!("select count(*)", listed!());
    LIST: "applications::list" = concat!(
        "select application_id, name, kind, grants, expires_at, row_mac, created_by, created_at,
               modified_by, modified_at",
        listed!(),
        "
        order by created_at desc, application_id desc
        offset $4
        limit $5"
    );
    UPDATE: "applications::update" =
        "update application
        set name = $3,
            grants = $4,
            modified_by = $5,
            modified_at = now(),
            row_mac = $6
        where tenant_id = $1
          and application_id = $2
        returning modified_at";
    DELETE: "applications::delete" =
        "delete from application
        where tenant_id = $1
          and application_id = $2
          and (expires_at is null or expires_at > now())
        returning row_mac";
    // Expired applications of all tenants.
    LIST_EXPIRED: "applications::list_expired" =
        "select application.tenant_id, tenant.public_id, application_id
        from application
        join tenant
          on tenant.tenant_id = application.tenant_id
        where expires_at <= now()
        order by expires_at
        limit $1";
    DELETE_EXPIRED: "applications::delete_expired" =
        "delete from application
        where tenant_id = $1
          and application_id = any($2::uuid[])
          and expires_at <= now()
        returning application_id, row_mac";
}

/// Inserts an application; `None` if its expiry is in the past.
pub(super) async fn insert(
    transaction: &Transaction,
    row: &ApplicationRow,
    by: Option<Uuid>,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.name,
        &(row.kind as i16),
        &row.grants,
        &by,
        &row.expires_at,
        &row_mac,
    ];
    let rows = transaction.run(&INSERT, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredApplication>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(StoredApplication::read))
}

/// Finds an application and locks it against changes and new keys.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredApplication>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(StoredApplication::read))
}

/// Returns a page of applications, newest first, and the total count.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    filter: &Filter,
    page: NumberedPage,
) -> Result<(Vec<StoredApplication>, i64), Error> {
    let kinds = filter.kinds.as_ref();
    let kinds: Option<Vec<i16>> = kinds.map(|all| all.iter().map(|kind| *kind as i16).collect());
    let (number, ids) = (&tenant.number, &filter.ids);
    let count = db.read_optional(&COUNT, &[number, ids, &kinds]).await?;
    let count = count.map_or(0, |row| row.get(0));
    if page.size == 0 || page.offset() >= count {
        return Ok((Vec::new(), count));
    }
    let (offset, limit) = (page.offset(), page.limit());
    let rows = db
        .read(&LIST, &[number, ids, &kinds, &offset, &limit])
        .await?;
    Ok((rows.iter().map(StoredApplication::read).collect(), count))
}

/// Updates an application and returns the time of the change.
pub(super) async fn update(
    transaction: &Transaction,
    row: &ApplicationRow,
    by: Option<Uuid>,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.name,
        &row.grants,
        &by,
        &row_mac,
    ];
    let rows = transaction.run(&UPDATE, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Deletes an application and returns its MAC; `None` if it does not exist.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Vec<u8>>, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Lists up to `limit` expired applications of all tenants.
pub(super) async fn list_expired(db: &Db, limit: i64) -> Result<Vec<(TenantId, Uuid)>, Error> {
    let rows = db.read(&LIST_EXPIRED, &[&limit]).await?;
    let application = |row: &Row| {
        let tenant = TenantId {
            number: row.get(0),
            uuid: row.get(1),
        };
        (tenant, row.get(2))
    };
    Ok(rows.iter().map(application).collect())
}

/// Deletes those of some applications that have expired; returns ids and MACs.
pub(super) async fn delete_expired(
    transaction: &Transaction,
    tenant: TenantId,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant.number, &ids];
    let rows = transaction.run(&DELETE_EXPIRED, params).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

impl StoredApplication {
    fn read(row: &Row) -> Self {
        Self {
            id: row.get(0),
            name: row.get(1),
            kind: row.get(2),
            grants: row.get(3),
            expires_at: row.get(4),
            row_mac: row.get(5),
            created_by: row.get(6),
            created_at: row.get(7),
            modified_by: row.get(8),
            modified_at: row.get(9),
        }
    }
}
