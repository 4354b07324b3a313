//! SQL statements for keys.

use cloakroom_core::access::KeyRow;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

/// A key as stored; its MAC is not yet verified.
pub(crate) struct StoredKey {
    pub lookup: String,
    pub application: Uuid,
    pub id: Uuid,
    pub key_digest: Vec<u8>,
    pub expires_at: Option<Timestamp>,
    pub row_mac: Vec<u8>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
}

statements! {
    INSERT_KEY: "applications::insert_key" =
        "insert into application_key
            (tenant_id, application_id, key_id, lookup, key_digest, created_by, expires_at, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict (lookup) do nothing
        returning created_at";
    COUNT_KEYS: "applications::count_keys" =
        "select count(*)
        from application_key
        where tenant_id = $1
          and application_id = $2";
    LIST_KEYS: "applications::list_keys" =
        "select lookup, application_id, key_id, key_digest, expires_at, row_mac, created_by,
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
        returning row_mac";
    APPLICATION_OF_KEY: "applications::application_of_key" =
        "select application_id
        from application_key
        where tenant_id = $1
          and key_id = $2";
    DELETE_KEYS: "applications::delete_keys" =
        "delete from application_key
        where tenant_id = $1
          and application_id = $2
        returning key_id, row_mac";
}

/// Inserts a key; `None` if another key has the same lookup part.
pub(crate) async fn insert_key(
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
        &row.key_digest,
        &by,
        &row.expires_at,
        &row_mac,
    ];
    let rows = transaction.run(&INSERT_KEY, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(crate) async fn count_keys(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<i64, Error> {
    let params: Params<'_> = &[&tenant.number, &application];
    let rows = transaction.run(&COUNT_KEYS, params).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Lists the keys of some applications, oldest first.
pub(crate) async fn list_keys(
    db: &Db,
    tenant: TenantId,
    applications: &[Uuid],
) -> Result<Vec<StoredKey>, Error> {
    let rows = db
        .read(&LIST_KEYS, &[&tenant.number, &applications])
        .await?;
    Ok(rows.iter().map(StoredKey::read).collect())
}

/// Lists the keys of a locked application, oldest first.
pub(crate) async fn list_keys_of_locked(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<Vec<StoredKey>, Error> {
    let params: Params<'_> = &[&tenant.number, &vec![application]];
    let rows = transaction.run(&LIST_KEYS, params).await?;
    Ok(rows.iter().map(StoredKey::read).collect())
}

/// Deletes one key and returns its MAC; `None` if it does not exist.
pub(crate) async fn delete_key(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
    key: Uuid,
) -> Result<Option<Vec<u8>>, Error> {
    let params: Params<'_> = &[&tenant.number, &application, &key];
    let rows = transaction.run(&DELETE_KEY, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(crate) async fn application_of_key(
    db: &Db,
    tenant: TenantId,
    key: Uuid,
) -> Result<Option<Uuid>, Error> {
    let params: Params<'_> = &[&tenant.number, &key];
    let row = db.read_optional(&APPLICATION_OF_KEY, params).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Deletes all keys of an application and returns their ids and MACs.
pub(crate) async fn delete_keys(
    transaction: &Transaction,
    tenant: TenantId,
    application: Uuid,
) -> Result<Vec<(Uuid, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant.number, &application];
    let rows = transaction.run(&DELETE_KEYS, params).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

impl StoredKey {
    fn read(row: &Row) -> Self {
        Self {
            lookup: row.get(0),
            application: row.get(1),
            id: row.get(2),
            key_digest: row.get(3),
            expires_at: row.get(4),
            row_mac: row.get(5),
            created_by: row.get(6),
            created_at: row.get(7),
        }
    }
}
