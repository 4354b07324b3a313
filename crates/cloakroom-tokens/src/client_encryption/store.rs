//! SQL statements for client encryption keys.

use cloakroom_core::access::Container;
use cloakroom_core::keys::ResealedPage;
use cloakroom_core::{fenced, replace_sealed, sealed_page};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Binding, ClientKey};

/// A key as stored.
pub(super) struct StoredKey {
    pub key: ClientKey,
    pub public_key: Vec<u8>,
    pub sealed: Vec<u8>,
}

statements! {
    // Concurrent inserts may exceed the limit slightly; the count takes no lock.
    INSERT: "client_encryption::insert" = concat!(
        "insert into client_key
            (tenant_id, key_id, public_key, sealed, created_by, expires_at, application_id, container)
        select $1, $2, $3, ", fenced!("$1", "$4"), ", $5, $6, $8, $9
        where (
            select count(*)
            from client_key
            where tenant_id = $1
              and expires_at > now()
        ) < $7
        returning 1");
    FIND: "client_encryption::find" =
        "select key_id, expires_at, application_id, container, public_key, sealed
        from client_key
        where tenant_id = $1
          and key_id = $2
          and expires_at > now()";
    LIST: "client_encryption::list" =
        "select key_id, expires_at, application_id, container, public_key, sealed
        from client_key
        where tenant_id = $1
          and expires_at > now()
        order by created_at desc, key_id
        limit $2";
    LIST_SEALED: "client_encryption::list_sealed" = sealed_page!(
        "client_key", "key_id", "key_id, expires_at, application_id, container, public_key, sealed");
    REPLACE_SEALED: "client_encryption::replace_sealed" = replace_sealed!("client_key", "key_id");
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
            returning client_key.tenant_id, client_key.key_id
        )
        select tenant_id, key_id from removed";
}

/// Inserts a key; false if the tenant already has `limit` keys.
pub(super) async fn insert(
    transaction: &Transaction,
    tenant: TenantId,
    stored: &StoredKey,
    created_by: Uuid,
    limit: i64,
) -> Result<bool, Error> {
    let container = stored.key.binding.container.as_ref().map(Container::as_str);
    let rows = transaction
        .run(
            &INSERT,
            &[
                &tenant.number,
                &stored.key.id,
                &stored.public_key,
                &stored.sealed,
                &created_by,
                &stored.key.expires_at,
                &limit,
                &stored.key.binding.application,
                &container,
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Finds an unexpired key.
pub(super) async fn find(db: &Db, tenant: TenantId, id: Uuid) -> Result<Option<StoredKey>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(stored))
}

/// Lists unexpired keys, newest first.
pub(super) async fn list(db: &Db, tenant: TenantId, limit: i64) -> Result<Vec<StoredKey>, Error> {
    let rows = db.read(&LIST, &[&tenant.number, &limit]).await?;
    Ok(rows.iter().map(stored).collect())
}

/// Lists up to `limit` keys after an id, also expired ones.
pub(super) async fn list_sealed(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<StoredKey>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_SEALED, params).await?;
    Ok(rows.iter().map(stored).collect())
}

pub(super) async fn replace_sealed(
    db: &Db,
    tenant: TenantId,
    page: ResealedPage,
) -> Result<ResealedPage, Error> {
    page.write(db, &REPLACE_SEALED, tenant).await
}

fn stored(row: &Row) -> StoredKey {
    let key = ClientKey {
        id: row.get(0),
        expires_at: row.get(1),
        binding: Binding {
            application: row.get(2),
            // A path modified by SQL differs from the authenticated one, so the key fails to open.
            container: row.get::<_, Option<&str>>(3).map(Container::known),
        },
    };
    StoredKey {
        key,
        public_key: row.get(4),
        sealed: row.get(5),
    }
}

/// Deletes an unexpired key; false if there is none.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(!rows.is_empty())
}

/// Deletes up to `limit` expired rows, oldest first; skips rows locked by other sweeps. Returns tenant and key of each.
pub(super) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<(i32, Uuid)>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
