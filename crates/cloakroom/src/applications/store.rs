//! Every SQL statement that makes, finds, changes and deletes applications and their keys.

use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::Filter;
use crate::access::{ApplicationRow, KeyRow};
use crate::api::NumberedPage;
use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, Transaction, statements};

/// An application as the table keeps it, still unchecked.
pub(super) struct KeptApplication {
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

/// A key as the table keeps it, still unchecked.
pub(super) struct KeptKey {
    pub lookup: String,
    pub application: Uuid,
    pub id: Uuid,
    pub secret_mac: Vec<u8>,
    pub expires_at: Option<Timestamp>,
    pub row_mac: Vec<u8>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
}

/// Finds one application that has not expired.
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

/// The applications of a list that have not expired.
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
    // Whether the expiry lies ahead is for the database's clock to say.
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
        returning true";
    INSERT_KEY: "applications::insert_key" =
        "insert into application_key
            (tenant_id, application_id, key_id, lookup, secret_mac, created_by, expires_at, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict (lookup) do nothing
        returning created_at";
    COUNT_KEYS: "applications::count_keys" =
        "select count(*)
        from application_key
        where tenant_id = $1
          and application_id = $2";
    LIST_KEYS: "applications::list_keys" =
        "select lookup, application_id, key_id, secret_mac, expires_at, row_mac, created_by,
               created_at
        from application_key
        where tenant_id = $1
          and application_id = any($2::uuid[])
        order by created_at, key_id";
    DELETE_KEY: "applications::delete_key" =
        "delete from application_key
        where tenant_id = $1
          and application_id = $2
          and key_id = $3
        returning true";
    APPLICATION_OF_KEY: "applications::application_of_key" =
        "select application_id
        from application_key
        where tenant_id = $1
          and key_id = $2";
    DELETE_KEYS: "applications::delete_keys" =
        "delete from application_key
        where tenant_id = $1
          and application_id = $2
        returning key_id";
    // Everything that expired, of all tenants; nodes that sweep at once take turns.
    SWEEP: "applications::sweep" =
        "delete from application
        using (
            select tenant_id, application_id
            from application
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        ) due
        where application.tenant_id = due.tenant_id
          and application.application_id = due.application_id
        returning application.tenant_id, application.application_id";
    SWEEP_KEYS: "applications::sweep_keys" =
        "delete from application_key key
        using unnest($1::integer[], $2::uuid[]) as gone (tenant_id, application_id)
        where key.tenant_id = gone.tenant_id
          and key.application_id = gone.application_id
        returning key.tenant_id, key.key_id";
}

/// Keeps an application; `None` when it would have expired already.
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
) -> Result<Option<KeptApplication>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(KeptApplication::read))
}

/// Finds an application and keeps others from changing it, or making keys for it, meanwhile.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<KeptApplication>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(KeptApplication::read))
}

/// A page of applications, the newest first, and how many there are on all pages.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    filter: &Filter,
    page: NumberedPage,
) -> Result<(Vec<KeptApplication>, i64), Error> {
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
    Ok((rows.iter().map(KeptApplication::read).collect(), count))
}

/// Replaces what may change of an application, and tells when that was.
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

/// Deletes an application; false when there is none.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(!rows.is_empty())
}

/// Keeps a key; `None` when another one has the same look-up part.
pub(super) async fn insert_key(
    transaction: &Transaction,
    row: &KeyRow,
    by: Option<Uuid>,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.application,
        &row.id,
        &row.lookup,
        &row.secret_mac,
        &by,
        &row.expires_at,
        &row_mac,
    ];
    let rows = transaction.run(&INSERT_KEY, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn count_keys(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<i64, Error> {
    let params: Params<'_> = &[&tenant.number, &application];
    let rows = transaction.run(&COUNT_KEYS, params).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// The keys of some applications, the oldest first.
pub(super) async fn list_keys(
    db: &Db,
    tenant: TenantId,
    applications: &[Uuid],
) -> Result<Vec<KeptKey>, Error> {
    let rows = db
        .read(&LIST_KEYS, &[&tenant.number, &applications])
        .await?;
    Ok(rows.iter().map(KeptKey::read).collect())
}

/// The keys of an application that is locked, the oldest first.
pub(super) async fn list_keys_of_locked(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<Vec<KeptKey>, Error> {
    let params: Params<'_> = &[&tenant.number, &vec![application]];
    let rows = transaction.run(&LIST_KEYS, params).await?;
    Ok(rows.iter().map(KeptKey::read).collect())
}

/// Deletes one key; false when there is none.
pub(super) async fn delete_key(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
    key: Uuid,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &application, &key];
    let rows = transaction.run(&DELETE_KEY, params).await?;
    Ok(!rows.is_empty())
}

pub(super) async fn application_of_key(
    db: &Db,
    tenant: TenantId,
    key: Uuid,
) -> Result<Option<Uuid>, Error> {
    let params: Params<'_> = &[&tenant.number, &key];
    let row = db.read_optional(&APPLICATION_OF_KEY, params).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Deletes every key of an application, and tells which.
pub(super) async fn delete_keys(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<Vec<Uuid>, Error> {
    let params: Params<'_> = &[&tenant.number, &application];
    let rows = transaction.run(&DELETE_KEYS, params).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Removes up to `limit` expired applications of all tenants, and tells which: by the tenant's number.
pub(super) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<(i32, Uuid)>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Removes the keys of applications that were swept, and tells which.
pub(super) async fn sweep_keys(
    transaction: &Transaction,
    gone: &[(i32, Uuid)],
) -> Result<Vec<(i32, Uuid)>, Error> {
    let (tenants, applications): (Vec<i32>, Vec<Uuid>) = gone.iter().copied().unzip();
    let rows = transaction
        .run(&SWEEP_KEYS, &[&tenants, &applications])
        .await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

impl KeptApplication {
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

impl KeptKey {
    fn read(row: &Row) -> Self {
        Self {
            lookup: row.get(0),
            application: row.get(1),
            id: row.get(2),
            secret_mac: row.get(3),
            expires_at: row.get(4),
            row_mac: row.get(5),
            created_by: row.get(6),
            created_at: row.get(7),
        }
    }
}
