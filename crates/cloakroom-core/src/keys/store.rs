//! SQL statements for keys.

use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::keyset::{KeysetState, StoredKeyset, VAULT};

/// A wrapped key as stored.
pub(super) struct KeyRow {
    pub purpose: i16,
    pub version: u32,
    pub state: i16,
    pub wrapped: Vec<u8>,
    pub check_value: Vec<u8>,
    pub created_at: Timestamp,
    /// When it began to seal or authenticate.
    pub activated_at: Option<Timestamp>,
}

/// Keys with the state of their keyset, the active ones first.
macro_rules! list_keys {
    ($table:literal, $tenant:literal, $where:literal) => {
        concat!(
            "select key.purpose, key.version, key.state, key.wrapped, key.check_value, key.created_at,
               key.activated_at, keyset.generation, keyset.digest, keyset.row_mac
        from ",
            $table,
            " key
        left join access_state keyset
          on keyset.tenant_id = ",
            $tenant,
            "
         and keyset.bucket = 256",
            $where,
            "
        order by (key.state = 2) desc, key.version desc"
        )
    };
}

statements! {
    // Locks the row until the end of the transaction, so that only one process initializes the vault.
    BIND_ENVIRONMENT: "keys::bind_environment" =
        "insert into vault (environment)
        values ($1)
        on conflict (only_row) do update
        set environment = vault.environment";
    FIND_ENVIRONMENT: "keys::find_environment" =
        "select environment
        from vault";
    INSERT_SYSTEM_KEY: "keys::insert_system_key" =
        "insert into system_key (purpose, version, state, wrapped, check_value, created_at, activated_at)
        values ($1, $2, $3, $4, $5, $6, $7)";
    INSERT_SYSTEM_KEYSET: "keys::insert_system_keyset" =
        "insert into access_state (tenant_id, bucket, generation, digest, row_mac)
        values (0, 256, $1, $2, $3)";
    LIST_SYSTEM_KEYS: "keys::list_system_keys" = list_keys!("system_key", "0", "");
    // The newest version signs. Deactivates the one before it; does nothing if another node has inserted this one.
    INSERT_SIGNING_KEY: "keys::insert_signing_key" =
        "with deactivated as (
            update system_key
            set state = 3
            where purpose = $1
              and version = $2 - 1
            returning true
        ), wrapped as (
            insert into system_key (purpose, version, state, wrapped, check_value, created_at, activated_at)
            select $1, $2, $3, $4, $5, $8, $9
            where (select count(*) from deactivated) = least($2 - 1, 1)
            on conflict do nothing
            returning true
        )
        insert into webhook_signing_key (version, public_key, sealed)
        select $2, $6, $7
        from wrapped
        returning true";
    LIST_SIGNING_KEYS: "keys::list_signing_keys" =
        "select version, public_key, sealed
        from webhook_signing_key
        order by version desc
        limit 3";
    FIND_GENERATION: "keys::find_generation" =
        "select keys_generation
        from vault";
    LIST_CHANGED_TENANTS: "keys::list_changed_tenants" =
        "select distinct tenant_id
        from key_rotation
        where generation > $1
        limit $2";
    FIND_PROOF: "keys::find_proof" =
        "select statement, signature
        from key_proof
        where tenant_id = $1
          and purpose = $2
          and version = $3";
    ANY_TENANT_KEYS: "keys::any_tenant_keys" =
        "select exists (select from tenant_key)";
    INSERT_TENANT_KEY: "keys::insert_tenant_key" =
        "insert into tenant_key
            (tenant_id, purpose, version, state, wrapped, check_value, created_at, activated_at, digest_epoch)
        select $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max(digest_epoch), 0)
        from tenant_key
        where tenant_id = $1";
    WRITE_SYSTEM_KEY: "keys::write_system_key" =
        "update system_key
        set state = $3,
            wrapped = $4,
            activated_at = $5
        where purpose = $1
          and version = $2";
    WRITE_TENANT_KEY: "keys::write_tenant_key" =
        "update tenant_key
        set state = $4,
            wrapped = $5,
            activated_at = $6
        where tenant_id = $1
          and purpose = $2
          and version = $3";
    // Purpose 3 is data: statements that store fingerprints and terms look up the key of their sealed value anyway.
    RAISE_DIGEST_FENCE: "keys::raise_digest_fence" =
        "update tenant_key
        set digest_epoch = $2
        where tenant_id = $1
          and purpose = 3
          and digest_epoch < $2
        returning true";
    // The wrapped bytes before are compared: two processes may replace the root key at the same time.
    REPLACE_WRAPPED: "keys::replace_wrapped" =
        "with vault_key as (
            update system_key
            set wrapped = $5
            where $1 = 0
              and purpose = $2
              and version = $3
              and wrapped = $4
            returning true
        ), key_of_tenant as (
            update tenant_key
            set wrapped = $5
            where tenant_id = $1
              and purpose = $2
              and version = $3
              and wrapped = $4
            returning true
        )
        select true
        from vault_key
        union all
        select true
        from key_of_tenant";
    COUNT_CHANGE: "keys::count_change" =
        "update vault
        set keys_generation = keys_generation + 1
        returning keys_generation";
    // State 4 is destroyed. The rows remain as evidence that the keys existed.
    DESTROY_TENANT_KEYS: "keys::destroy_tenant_keys" =
        "update tenant_key
        set state = 4,
            wrapped = ''
        where tenant_id = $1";
    LIST_TENANT_KEYS: "keys::list_tenant_keys" =
        list_keys!("tenant_key", "$1", "\n        where key.tenant_id = $1");
}

/// Binds an unbound database to an environment, and locks the row of the vault.
pub(super) async fn bind_environment(
    transaction: &Transaction,
    environment: &str,
) -> Result<(), Error> {
    transaction.run(&BIND_ENVIRONMENT, &[&environment]).await?;
    Ok(())
}

pub(super) async fn find_environment(db: &Db) -> Result<Option<String>, Error> {
    Ok(db
        .read_optional(&FIND_ENVIRONMENT, &[])
        .await?
        .map(|row| row.get(0)))
}

/// Inserts the first keys of the vault with the state of their keyset.
pub(super) async fn insert_system_keys(
    transaction: &Transaction,
    keys: &[KeyRow],
    state: &KeysetState,
) -> Result<(), Error> {
    for key in keys {
        insert_system_key(transaction, key).await?;
    }
    let params: Params<'_> = &[&state.generation, &state.digest, &state.row_mac];
    transaction.run(&INSERT_SYSTEM_KEYSET, params).await?;
    Ok(())
}

/// Keys as one statement read them, and what authenticates them.
pub(super) struct ListedKeys {
    pub rows: Vec<KeyRow>,
    pub keyset: StoredKeyset,
}

impl ListedKeys {
    fn read(rows: &[Row]) -> Self {
        let state = rows.first().and_then(|row| {
            Some(KeysetState {
                generation: row.get::<_, Option<i64>>(7)?,
                digest: row.get(8),
                row_mac: row.get(9),
            })
        });
        let rows: Vec<KeyRow> = rows.iter().map(key_row).collect();
        let members = rows.iter().map(KeyRow::member).collect();
        Self {
            rows,
            keyset: StoredKeyset { state, members },
        }
    }
}

pub(super) async fn list_system_keys(db: &Db) -> Result<ListedKeys, Error> {
    Ok(ListedKeys::read(&db.read(&LIST_SYSTEM_KEYS, &[]).await?))
}

/// Lists the keys of the vault within the transaction that initializes it.
pub(super) async fn list_system_keys_within(
    transaction: &Transaction,
) -> Result<ListedKeys, Error> {
    let rows = transaction.run(&LIST_SYSTEM_KEYS, &[]).await?;
    Ok(ListedKeys::read(&rows))
}

/// A key pair that signs, as stored.
pub(super) struct SigningKeyRow {
    pub version: u32,
    pub public_key: Vec<u8>,
    pub sealed: Vec<u8>,
}

/// Inserts a key pair with the system key that seals it; false if the version exists.
pub(super) async fn insert_signing_key(
    transaction: &Transaction,
    purpose: i16,
    key: &KeyRow,
    row: &SigningKeyRow,
) -> Result<bool, Error> {
    let params: Params<'_> = &[
        &purpose,
        &row.version.cast_signed(),
        &key.state,
        &key.wrapped,
        &key.check_value,
        &row.public_key,
        &row.sealed,
        &key.created_at,
        &key.activated_at,
    ];
    let rows = transaction.run(&INSERT_SIGNING_KEY, params).await?;
    Ok(!rows.is_empty())
}

/// Lists the newest key pairs, newest first.
pub(super) async fn list_signing_keys(db: &Db) -> Result<Vec<SigningKeyRow>, Error> {
    let rows = db.read(&LIST_SIGNING_KEYS, &[]).await?;
    let row = |row: &Row| SigningKeyRow {
        version: row.get::<_, i32>(0).cast_unsigned(),
        public_key: row.get(1),
        sealed: row.get(2),
    };
    Ok(rows.iter().map(row).collect())
}

/// How often keys were changed.
pub(super) async fn find_generation(db: &Db) -> Result<i64, Error> {
    let row = db.read_optional(&FIND_GENERATION, &[]).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Lists tenants whose keys were changed after a generation.
pub(super) async fn list_changed_tenants(
    db: &Db,
    after: i64,
    limit: i64,
) -> Result<Vec<i32>, Error> {
    let rows = db.read(&LIST_CHANGED_TENANTS, &[&after, &limit]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The signed statement that a version of a key is unused, with its signature.
pub async fn find_proof(
    db: &Db,
    (owner, purpose, version): (TenantId, KeyPurpose, u32),
) -> Result<Option<(String, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&owner.number, &purpose.number(), &version.cast_signed()];
    let row = db.read_optional(&FIND_PROOF, params).await?;
    Ok(row.map(|row| (row.get(0), row.get(1))))
}

/// Whether the vault has ever had a tenant.
pub(super) async fn any_tenant_keys(db: &Db) -> Result<bool, Error> {
    let row = db.read_optional(&ANY_TENANT_KEYS, &[]).await?;
    Ok(row.is_some_and(|row| row.get(0)))
}

async fn insert_system_key(transaction: &Transaction, key: &KeyRow) -> Result<(), Error> {
    let params: Params<'_> = &[
        &key.purpose,
        &key.version.cast_signed(),
        &key.state,
        &key.wrapped,
        &key.check_value,
        &key.created_at,
        &key.activated_at,
    ];
    transaction.run(&INSERT_SYSTEM_KEY, params).await?;
    Ok(())
}

/// Inserts a key of a tenant or of the vault.
pub(super) async fn insert_key(
    transaction: &Transaction,
    owner: TenantId,
    key: &KeyRow,
) -> Result<(), Error> {
    match owner == VAULT {
        true => insert_system_key(transaction, key).await,
        false => insert_tenant_key(transaction, owner, key).await,
    }
}

pub(super) async fn insert_tenant_key(
    transaction: &Transaction,
    tenant: TenantId,
    key: &KeyRow,
) -> Result<(), Error> {
    let version = key.version.cast_signed();
    transaction
        .run(
            &INSERT_TENANT_KEY,
            &[
                &tenant.number,
                &key.purpose,
                &version,
                &key.state,
                &key.wrapped,
                &key.check_value,
                &key.created_at,
                &key.activated_at,
            ],
        )
        .await?;
    Ok(())
}

/// Writes state, wrapped bytes and time of activation of a key of a tenant or of the vault.
pub(super) async fn write_key(
    transaction: &Transaction,
    owner: TenantId,
    key: &KeyRow,
) -> Result<(), Error> {
    if owner != VAULT {
        return write_tenant_key(transaction, owner, key).await;
    }
    let params: Params<'_> = &[
        &key.purpose,
        &key.version.cast_signed(),
        &key.state,
        &key.wrapped,
        &key.activated_at,
    ];
    transaction.run(&WRITE_SYSTEM_KEY, params).await?;
    Ok(())
}

/// Writes state, wrapped bytes and time of activation of a tenant's key.
pub(super) async fn write_tenant_key(
    transaction: &Transaction,
    tenant: TenantId,
    key: &KeyRow,
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &tenant.number,
        &key.purpose,
        &key.version.cast_signed(),
        &key.state,
        &key.wrapped,
        &key.activated_at,
    ];
    transaction.run(&WRITE_TENANT_KEY, params).await?;
    Ok(())
}

/// Rejects statements with digests of an older epoch; false if they are rejected already.
pub(super) async fn raise_digest_fence(
    transaction: &Transaction,
    tenant: TenantId,
    epoch: i32,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &epoch];
    let rows = transaction.run(&RAISE_DIGEST_FENCE, params).await?;
    Ok(!rows.is_empty())
}

/// Replaces the wrapped bytes of a key of the vault or of a tenant; false if they were replaced meanwhile.
pub(super) async fn replace_wrapped(
    db: &Db,
    owner: i32,
    key: &KeyRow,
    wrapped: &[u8],
) -> Result<bool, Error> {
    let version = key.version.cast_signed();
    let params: Params<'_> = &[&owner, &key.purpose, &version, &key.wrapped, &wrapped];
    Ok(!db.write(&REPLACE_WRAPPED, params).await?.is_empty())
}

/// Increases the generation of keys; returns the new one.
pub(super) async fn count_change(transaction: &Transaction) -> Result<i64, Error> {
    let rows = transaction.run(&COUNT_CHANGE, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

pub(super) async fn destroy_tenant_keys(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<(), Error> {
    transaction
        .run(&DESTROY_TENANT_KEYS, &[&tenant.number])
        .await?;
    Ok(())
}

pub(super) async fn list_tenant_keys(db: &Db, tenant: TenantId) -> Result<ListedKeys, Error> {
    let rows = db.read(&LIST_TENANT_KEYS, &[&tenant.number]).await?;
    Ok(ListedKeys::read(&rows))
}

/// Lists the keys of a tenant or of the vault within a transaction that holds the lock of their keyset.
pub(super) async fn list_keys_within(
    transaction: &Transaction,
    owner: TenantId,
) -> Result<Vec<KeyRow>, Error> {
    match owner == VAULT {
        true => Ok(list_system_keys_within(transaction).await?.rows),
        false => list_tenant_keys_within(transaction, owner).await,
    }
}

/// Lists the keys of a tenant within a transaction that holds the lock of their keyset.
pub(super) async fn list_tenant_keys_within(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<Vec<KeyRow>, Error> {
    let rows = transaction
        .run(&LIST_TENANT_KEYS, &[&tenant.number])
        .await?;
    Ok(rows.iter().map(key_row).collect())
}

fn key_row(row: &Row) -> KeyRow {
    KeyRow {
        purpose: row.get(0),
        version: row.get::<_, i32>(1).cast_unsigned(),
        state: row.get(2),
        wrapped: row.get(3),
        check_value: row.get(4),
        created_at: row.get(5),
        activated_at: row.get(6),
    }
}
