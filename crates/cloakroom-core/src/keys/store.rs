//! SQL statements for keys.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};

/// A wrapped key as stored.
pub(super) struct KeyRow {
    pub purpose: i16,
    pub version: u32,
    pub state: i16,
    pub wrapped: Vec<u8>,
    pub check_value: Vec<u8>,
}

statements! {
    BIND_ENVIRONMENT: "keys::bind_environment" =
        "insert into vault (environment)
        values ($1)
        on conflict (only_row) do nothing";
    FIND_ENVIRONMENT: "keys::find_environment" =
        "select environment
        from vault";
    INSERT_SYSTEM_KEY: "keys::insert_system_key" =
        "insert into system_key (purpose, version, state, wrapped, check_value)
        values ($1, $2, $3, $4, $5)
        on conflict (purpose, version) do nothing";
    LIST_SYSTEM_KEYS: "keys::list_system_keys" =
        "select purpose, version, state, wrapped, check_value
        from system_key
        order by state, version desc";
    // The newest version signs. Deactivates the one before it; does nothing if another node has inserted this one.
    INSERT_SIGNING_KEY: "keys::insert_signing_key" =
        "with deactivated as (
            update system_key
            set state = 3
            where purpose = $1
              and version = $2 - 1
            returning true
        ), wrapped as (
            insert into system_key (purpose, version, state, wrapped, check_value)
            select $1, $2, $3, $4, $5
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
    ANY_TENANT_KEYS: "keys::any_tenant_keys" =
        "select exists (select from tenant_key)";
    INSERT_TENANT_KEY: "keys::insert_tenant_key" =
        "insert into tenant_key (tenant_id, purpose, version, state, wrapped, check_value)
        values ($1, $2, $3, $4, $5, $6)";
    // State 4 is destroyed. The rows remain as evidence that the keys existed.
    DESTROY_TENANT_KEYS: "keys::destroy_tenant_keys" =
        "update tenant_key
        set state = 4,
            wrapped = ''
        where tenant_id = $1";
    LIST_TENANT_KEYS: "keys::list_tenant_keys" =
        "select purpose, version, state, wrapped, check_value
        from tenant_key
        where tenant_id = $1
        order by state, version desc";
}

/// Binds an unbound database to an environment; does nothing if it is already bound.
pub(super) async fn bind_environment(db: &Db, environment: &str) -> Result<(), Error> {
    db.write(&BIND_ENVIRONMENT, &[&environment]).await?;
    Ok(())
}

pub(super) async fn find_environment(db: &Db) -> Result<Option<String>, Error> {
    Ok(db
        .read_optional(&FIND_ENVIRONMENT, &[])
        .await?
        .map(|row| row.get(0)))
}

/// Inserts a system key unless one of that purpose and version exists.
pub(super) async fn insert_system_key(db: &Db, key: &KeyRow) -> Result<(), Error> {
    let version = key.version.cast_signed();
    db.write(
        &INSERT_SYSTEM_KEY,
        &[
            &key.purpose,
            &version,
            &key.state,
            &key.wrapped,
            &key.check_value,
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn list_system_keys(db: &Db) -> Result<Vec<KeyRow>, Error> {
    let rows = db.read(&LIST_SYSTEM_KEYS, &[]).await?;
    Ok(rows.iter().map(key_row).collect())
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
    ];
    let rows = transaction.run(&INSERT_SIGNING_KEY, params).await?;
    Ok(!rows.is_empty())
}

/// Lists the newest key pairs, newest first.
pub(super) async fn list_signing_keys(db: &Db) -> Result<Vec<SigningKeyRow>, Error> {
    let rows = db.read(&LIST_SIGNING_KEYS, &[]).await?;
    let row = |row: &tokio_postgres::Row| SigningKeyRow {
        version: row.get::<_, i32>(0).cast_unsigned(),
        public_key: row.get(1),
        sealed: row.get(2),
    };
    Ok(rows.iter().map(row).collect())
}

/// Whether the vault has ever had a tenant.
pub(super) async fn any_tenant_keys(db: &Db) -> Result<bool, Error> {
    let row = db.read_optional(&ANY_TENANT_KEYS, &[]).await?;
    Ok(row.is_some_and(|row| row.get(0)))
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
            ],
        )
        .await?;
    Ok(())
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

pub(super) async fn list_tenant_keys(db: &Db, tenant: TenantId) -> Result<Vec<KeyRow>, Error> {
    let rows = db.read(&LIST_TENANT_KEYS, &[&tenant.number]).await?;
    Ok(rows.iter().map(key_row).collect())
}

fn key_row(row: &tokio_postgres::Row) -> KeyRow {
    KeyRow {
        purpose: row.get(0),
        version: row.get::<_, i32>(1).cast_unsigned(),
        state: row.get(2),
        wrapped: row.get(3),
        check_value: row.get(4),
    }
}
