//! Every SQL statement about client encryption keys.

use tokio_postgres::Row;
use uuid::Uuid;

use super::ClientKey;
use crate::ids::TenantId;
use crate::storage::{Db, Error, Transaction, statements};

/// A key as it is kept.
pub(super) struct Kept {
    pub key: ClientKey,
    pub public_key: Vec<u8>,
    pub sealed: Vec<u8>,
}

statements! {
    // Whoever adds the last one at the same moment as others may exceed the limit by those.
    INSERT: "client_encryption::insert" =
        "insert into client_key (tenant_id, key_id, public_key, sealed, created_by, expires_at)
        select $1, $2, $3, $4, $5, $6
        where (
            select count(*)
            from client_key
            where tenant_id = $1
              and expires_at > now()
        ) < $7
        returning 1";
    FIND: "client_encryption::find" =
        "select key_id, expires_at, public_key, sealed
        from client_key
        where tenant_id = $1
          and key_id = $2
          and expires_at > now()";
    LIST: "client_encryption::list" =
        "select key_id, expires_at
        from client_key
        where tenant_id = $1
          and expires_at > now()
        order by created_at desc, key_id
        limit $2";
    DELETE: "client_encryption::delete" =
        "delete from client_key
        where tenant_id = $1
          and key_id = $2
          and expires_at > now()
        returning 1";
    SWEEP: "client_encryption::sweep" =
        "with expired as (
            select tenant_id, key_id
            from client_key
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        ), removed as (
            delete from client_key
            using expired
            where client_key.tenant_id = expired.tenant_id
              and client_key.key_id = expired.key_id
            returning 1
        )
        select count(*) from removed";
}

/// Keeps a key; false when the tenant has `limit` of them.
pub(super) async fn insert(
    transaction: &Transaction,
    tenant: TenantId,
    kept: &Kept,
    created_by: Uuid,
    limit: i64,
) -> Result<bool, Error> {
    let rows = transaction
        .run(
            &INSERT,
            &[
                &tenant.number,
                &kept.key.id,
                &kept.public_key,
                &kept.sealed,
                &created_by,
                &kept.key.expires_at,
                &limit,
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Finds a key that has not expired.
pub(super) async fn find(db: &Db, tenant: TenantId, id: Uuid) -> Result<Option<Kept>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.map(|row| Kept {
        key: key(&row),
        public_key: row.get(2),
        sealed: row.get(3),
    }))
}

/// The keys that have not expired, newest first.
pub(super) async fn list(db: &Db, tenant: TenantId, limit: i64) -> Result<Vec<ClientKey>, Error> {
    let rows = db.read(&LIST, &[&tenant.number, &limit]).await?;
    Ok(rows.iter().map(key).collect())
}

fn key(row: &Row) -> ClientKey {
    ClientKey {
        id: row.get(0),
        expires_at: row.get(1),
    }
}

/// Deletes a key that has not expired; false when there is none.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(!rows.is_empty())
}

/// Removes the oldest expired rows that nobody else is removing, `limit` at most.
pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    let rows = db.write(&SWEEP, &[&limit]).await?;
    let removed = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    Ok(removed.unsigned_abs())
}
