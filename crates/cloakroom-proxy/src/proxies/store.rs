//! SQL statements for proxies.

use cloakroom_core::access::StoredBucket;
use cloakroom_core::{
    access_state_columns, fenced, join_access_state, proxy_bucket, proxy_bucket_macs,
};
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::Filter;
use super::row::ProxyRow;

/// A proxy as stored; its MAC is not yet verified.
pub(super) struct StoredProxy {
    pub row: ProxyRow,
    pub row_mac: Vec<u8>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

macro_rules! columns {
    () => {
        "tenant_id, proxy_id, row_version, name, destination_url, application_id, key_digest, sealed, row_mac,
               created_by, created_at, modified_by, modified_at"
    };
}

/// Proxies that match a filter.
macro_rules! listed {
    () => {
        "
        from proxy
        where tenant_id = $1
          and ($2::uuid[] is null or proxy_id = any($2))
          and ($3::text is null or name ilike $3)"
    };
}

statements! {
    // Concurrent inserts may exceed the limit slightly; the count takes no lock.
    INSERT: "proxies::insert" = concat!(
        "insert into proxy
            (tenant_id, proxy_id, row_version, name, destination_url, application_id, key_digest, sealed, row_mac,
             created_by)
        select $1, $2, $3, $4, $5, $6, $7, ", fenced!("$1", "$8"), ", $9, $10
        where (
            select count(*)
            from proxy
            where tenant_id = $1
        ) < $11
        returning created_at");
    FIND: "proxies::find" = concat!(
        "select ", columns!(), "
        from proxy
        where tenant_id = $1
          and proxy_id = $2"
    );
    // Not limited to a tenant: the key determines the tenant.
    FIND_BY_KEY: "proxies::find_by_key" = concat!(
        "select found.*,
               ", access_state_columns!("state", proxy_bucket_macs!("found.tenant_id", "found.proxy_id")), "
        from (
            select ", columns!(), "
            from proxy
            where key_digest = $1
        ) found",
        join_access_state!("state", "found.tenant_id", proxy_bucket!("found.proxy_id"))
    );
    COUNT: "proxies::count" = concat!("select count(*)", listed!());
    LIST: "proxies::list" = concat!(
        "select ", columns!(), listed!(), "
        order by created_at desc, proxy_id desc
        offset $4
        limit $5"
    );
    UPDATE: "proxies::update" = concat!(
        "update proxy
        set row_version = $3,
            name = $4,
            destination_url = $5,
            application_id = $6,
            key_digest = $7,
            sealed = ", fenced!("$1", "$8"), ",
            row_mac = $9,
            modified_by = $10,
            modified_at = now()
        where tenant_id = $1
          and proxy_id = $2
          and row_version = $3 - 1
        returning modified_at");
    LIST_IDS: "proxies::list_ids" =
        "select proxy_id
        from proxy
        where tenant_id = $1
          and proxy_id > $2
        order by proxy_id
        limit $3";
    LIST_AFTER: "proxies::list_after" = concat!(
        "select ", columns!(), "
        from proxy
        where tenant_id = $1
          and proxy_id > $2
        order by proxy_id
        limit $3"
    );
    LOCK: "proxies::lock" = concat!(
        "select ", columns!(), "
        from proxy
        where tenant_id = $1
          and proxy_id = $2
        for update"
    );
    REPLACE_SEALED: "proxies::replace_sealed" = concat!(
        "update proxy
        set sealed = ", fenced!("$1", "$3"), ",
            row_mac = $4
        where tenant_id = $1
          and proxy_id = $2");
    DELETE: "proxies::delete" =
        "delete from proxy
        where tenant_id = $1
          and proxy_id = $2
        returning row_mac";
}

/// Inserts a proxy; `None` if the tenant already has `limit` proxies.
pub(super) async fn insert(
    transaction: &Transaction,
    row: &ProxyRow,
    row_mac: &[u8],
    by: Uuid,
    limit: i64,
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.row_version,
        &row.name,
        &row.destination_url,
        &row.application,
        &row.key_digest,
        &row.sealed,
        &row_mac,
        &by,
        &limit,
    ];
    let rows = transaction.run(&INSERT, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredProxy>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(StoredProxy::read))
}

/// Finds a proxy by the digest of its key, with its bucket.
pub(super) async fn find_by_key(
    db: &Db,
    digest: &[u8; 32],
) -> Result<Option<(StoredProxy, StoredBucket)>, Error> {
    let row = db.read_optional(&FIND_BY_KEY, &[&&digest[..]]).await?;
    let found = |row: &Row| (StoredProxy::read(row), StoredBucket::read(row, 13));
    Ok(row.as_ref().map(found))
}

/// Returns a page of proxies, newest first, and the total count.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    filter: &Filter,
    page: NumberedPage,
) -> Result<(Vec<StoredProxy>, i64), Error> {
    let (number, ids, name) = (&tenant.number, &filter.ids, &filter.name_pattern);
    let count = db.read_optional(&COUNT, &[number, ids, name]).await?;
    let count = count.map_or(0, |row| row.get(0));
    if page.size == 0 || page.offset() >= count {
        return Ok((Vec::new(), count));
    }
    let (offset, limit) = (page.offset(), page.limit());
    let params: Params<'_> = &[number, ids, name, &offset, &limit];
    let rows = db.read(&LIST, params).await?;
    Ok((rows.iter().map(StoredProxy::read).collect(), count))
}

/// Replaces the previous version of a proxy; `None` if it was changed or deleted meanwhile.
pub(super) async fn update(
    transaction: &Transaction,
    row: &ProxyRow,
    row_mac: &[u8],
    by: Uuid,
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.row_version,
        &row.name,
        &row.destination_url,
        &row.application,
        &row.key_digest,
        &row.sealed,
        &row_mac,
        &by,
    ];
    let rows = transaction.run(&UPDATE, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Lists the ids of up to `limit` proxies after an id.
pub(super) async fn list_ids(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Uuid>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_IDS, params).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Lists up to `limit` proxies after an id.
pub(super) async fn list_after(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<StoredProxy>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_AFTER, params).await?;
    Ok(rows.iter().map(StoredProxy::read).collect())
}

/// Finds a proxy and locks it against changes.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredProxy>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(StoredProxy::read))
}

/// Replaces the sealed part of a locked proxy.
pub(super) async fn replace_sealed(
    transaction: &Transaction,
    row: &ProxyRow,
    row_mac: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[&row.tenant_number, &row.id, &row.sealed, &row_mac];
    transaction.run(&REPLACE_SEALED, params).await?;
    Ok(())
}

/// Deletes a proxy and returns its MAC; `None` if it does not exist.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Vec<u8>>, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

impl StoredProxy {
    fn read(row: &Row) -> Self {
        Self {
            row: ProxyRow {
                tenant_number: row.get(0),
                id: row.get(1),
                row_version: row.get(2),
                name: row.get(3),
                destination_url: row.get(4),
                application: row.get(5),
                key_digest: row.get(6),
                sealed: row.get(7),
            },
            row_mac: row.get(8),
            created_by: row.get(9),
            created_at: row.get(10),
            modified_by: row.get(11),
            modified_at: row.get(12),
        }
    }
}
