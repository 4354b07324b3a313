//! Every SQL statement about tenants, applications and their keys.

use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::row_mac::{ApplicationRow, KeyRow, TenantRow};
use super::{ApplicationKind, TenantKind};
use crate::ids::TenantId;
use crate::storage::{Db, Error, Transaction, statements};

/// A key with everything that its holder's rights depend on, and the digests over each row.
pub(super) struct Credential {
    pub key: KeyRow,
    pub key_mac: Vec<u8>,
    pub application: ApplicationRow,
    pub application_mac: Vec<u8>,
    pub tenant: TenantRow,
    pub tenant_mac: Vec<u8>,
}

impl Credential {
    /// A row that no key has, for doing the same work when there is none.
    pub(super) fn nobody() -> Self {
        let (id, mac) = (Uuid::nil(), vec![0; 32]);
        let tenant = TenantId {
            number: 0,
            uuid: id,
        };
        Self {
            key: KeyRow {
                lookup: String::new(),
                tenant_number: 0,
                application: id,
                id,
                secret_mac: mac.clone(),
                expires_at: None,
            },
            key_mac: mac.clone(),
            application: ApplicationRow {
                tenant_number: 0,
                id,
                name: String::new(),
                kind: ApplicationKind::Public,
                grants: String::new(),
                expires_at: None,
            },
            application_mac: mac.clone(),
            tenant: TenantRow {
                id: tenant,
                name: String::new(),
                kind: TenantKind::Test,
                settings: String::new(),
                quotas: String::new(),
            },
            tenant_mac: mac,
        }
    }
}

statements! {
    NEXT_TENANT_NUMBER: "access::next_tenant_number" =
        "select coalesce(max(tenant_id), 0) + 1
        from tenant";
    INSERT_TENANT: "access::insert_tenant" =
        "insert into tenant (tenant_id, public_id, name, kind, settings, quotas, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (tenant_id) do nothing
        returning created_at";
    FIND_TENANT: "access::find_tenant" =
        "select tenant_id, public_id, name, kind, settings, quotas, row_mac, created_at
        from tenant
        where public_id = $1";
    LIST_TENANTS: "access::list_tenants" =
        "select tenant_id, public_id, name, kind, settings, quotas, row_mac, created_at
        from tenant
        where tenant_id > $1
        order by tenant_id
        limit $2";
    LIST_APPLICATIONS: "access::list_applications" =
        "select application_id, name, kind, grants, expires_at, row_mac
        from application
        where tenant_id = $1
          and application_id > $2
        order by application_id
        limit $3";
    LIST_KEYS: "access::list_keys" =
        "select lookup, application_id, key_id, secret_mac, expires_at, row_mac
        from application_key
        where tenant_id = $1
          and (application_id, key_id) > ($2, $3)
        order by application_id, key_id
        limit $4";
    INSERT_APPLICATION: "access::insert_application" =
        "insert into application
            (tenant_id, application_id, name, kind, grants, expires_at, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7)";
    FIND_APPLICATION: "access::find_application" =
        "select application_id, name, kind, grants, expires_at, row_mac
        from application
        where tenant_id = $1
          and application_id = $2
          and (expires_at is null or expires_at > now())";
    INSERT_KEY: "access::insert_key" =
        "insert into application_key
            (lookup, tenant_id, application_id, key_id, secret_mac, expires_at, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7)";
    COUNT_KEYS: "access::count_keys" =
        "select count(*)
        from application_key
        where tenant_id = $1
          and application_id = $2";
    // The one statement that starts without a tenant: the key's text is what names it.
    FIND_CREDENTIAL: "access::find_credential" =
        "select key.lookup, key.tenant_id, key.application_id, key.key_id, key.secret_mac,
               key.expires_at, key.row_mac,
               application.name, application.kind, application.grants, application.expires_at,
               application.row_mac,
               tenant.public_id, tenant.name, tenant.kind, tenant.settings, tenant.quotas,
               tenant.row_mac
        from application_key key
        join application
          on application.tenant_id = key.tenant_id
         and application.application_id = key.application_id
        join tenant
          on tenant.tenant_id = key.tenant_id
        where key.lookup = $1
          and (key.expires_at is null or key.expires_at > now())
          and (application.expires_at is null or application.expires_at > now())";
}

pub(super) async fn next_tenant_number(db: &Db) -> Result<i32, Error> {
    let row = db.read_optional(&NEXT_TENANT_NUMBER, &[]).await?;
    Ok(row.map_or(1, |row| row.get(0)))
}

/// Keeps a tenant; `None` when another one took the number meanwhile.
pub(super) async fn insert_tenant(
    transaction: &Transaction,
    tenant: &TenantRow,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let kind = tenant.kind as i16;
    let rows = transaction
        .run(
            &INSERT_TENANT,
            &[
                &tenant.id.number,
                &tenant.id.uuid,
                &tenant.name,
                &kind,
                &tenant.settings,
                &tenant.quotas,
                &row_mac,
            ],
        )
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// A tenant's row, its digest, and when it was made.
pub(super) type KeptTenant = (TenantRow, Vec<u8>, Timestamp);

pub(super) async fn find_tenant(db: &Db, id: Uuid) -> Result<Option<KeptTenant>, Error> {
    let row = db.read_optional(&FIND_TENANT, &[&id]).await?;
    Ok(row.as_ref().and_then(kept_tenant))
}

/// Tenants after the given number, in order.
pub(super) async fn list_tenants(
    db: &Db,
    after: i32,
    limit: i64,
) -> Result<Vec<KeptTenant>, Error> {
    let rows = db.read(&LIST_TENANTS, &[&after, &limit]).await?;
    Ok(rows.iter().filter_map(kept_tenant).collect())
}

fn kept_tenant(row: &Row) -> Option<KeptTenant> {
    let tenant = TenantRow {
        id: TenantId {
            number: row.get(0),
            uuid: row.get(1),
        },
        name: row.get(2),
        kind: TenantKind::from_number(row.get(3))?,
        settings: row.get(4),
        quotas: row.get(5),
    };
    Some((tenant, row.get(6), row.get(7)))
}

pub(super) async fn insert_application(
    db: &Db,
    application: &ApplicationRow,
    row_mac: &[u8],
) -> Result<(), Error> {
    let kind = application.kind as i16;
    db.write(
        &INSERT_APPLICATION,
        &[
            &application.tenant_number,
            &application.id,
            &application.name,
            &kind,
            &application.grants,
            &application.expires_at,
            &row_mac,
        ],
    )
    .await?;
    Ok(())
}

/// An application's row and its digest.
pub(super) async fn find_application(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<(ApplicationRow, Vec<u8>)>, Error> {
    let row = db
        .read_optional(&FIND_APPLICATION, &[&tenant.number, &id])
        .await?;
    Ok(row.as_ref().and_then(|row| kept_application(tenant, row)))
}

/// Applications after the given id, in order.
pub(super) async fn list_applications(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(ApplicationRow, Vec<u8>)>, Error> {
    let rows = db
        .read(&LIST_APPLICATIONS, &[&tenant.number, &after, &limit])
        .await?;
    Ok(rows
        .iter()
        .filter_map(|row| kept_application(tenant, row))
        .collect())
}

fn kept_application(tenant: TenantId, row: &Row) -> Option<(ApplicationRow, Vec<u8>)> {
    let application = ApplicationRow {
        tenant_number: tenant.number,
        id: row.get(0),
        name: row.get(1),
        kind: ApplicationKind::from_number(row.get(2))?,
        grants: row.get(3),
        expires_at: row.get(4),
    };
    Some((application, row.get(5)))
}

/// Keys after the given application and key, in order, each with its digest.
pub(super) async fn list_keys(
    db: &Db,
    tenant: TenantId,
    after: (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<(KeyRow, Vec<u8>)>, Error> {
    let rows = db
        .read(&LIST_KEYS, &[&tenant.number, &after.0, &after.1, &limit])
        .await?;
    let kept_key = |row: &Row| {
        let key = KeyRow {
            lookup: row.get(0),
            tenant_number: tenant.number,
            application: row.get(1),
            id: row.get(2),
            secret_mac: row.get(3),
            expires_at: row.get(4),
        };
        (key, row.get(5))
    };
    Ok(rows.iter().map(kept_key).collect())
}

pub(super) async fn insert_key(db: &Db, key: &KeyRow, row_mac: &[u8]) -> Result<(), Error> {
    db.write(
        &INSERT_KEY,
        &[
            &key.lookup,
            &key.tenant_number,
            &key.application,
            &key.id,
            &key.secret_mac,
            &key.expires_at,
            &row_mac,
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn count_keys(db: &Db, tenant: TenantId, application: Uuid) -> Result<i64, Error> {
    let row = db
        .read_optional(&COUNT_KEYS, &[&tenant.number, &application])
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Finds a key that is not expired, by the look-up part of its text.
pub(super) async fn find_credential(db: &Db, lookup: &str) -> Result<Option<Credential>, Error> {
    let row = db.read_optional(&FIND_CREDENTIAL, &[&lookup]).await?;
    Ok(row.as_ref().and_then(credential))
}

fn credential(row: &Row) -> Option<Credential> {
    let tenant_number: i32 = row.get(1);
    let application_id: Uuid = row.get(2);
    Some(Credential {
        key: KeyRow {
            lookup: row.get(0),
            tenant_number,
            application: application_id,
            id: row.get(3),
            secret_mac: row.get(4),
            expires_at: row.get(5),
        },
        key_mac: row.get(6),
        application: ApplicationRow {
            tenant_number,
            id: application_id,
            name: row.get(7),
            kind: ApplicationKind::from_number(row.get(8))?,
            grants: row.get(9),
            expires_at: row.get(10),
        },
        application_mac: row.get(11),
        tenant: TenantRow {
            id: TenantId {
                number: tenant_number,
                uuid: row.get(12),
            },
            name: row.get(13),
            kind: TenantKind::from_number(row.get(14))?,
            settings: row.get(15),
            quotas: row.get(16),
        },
        tenant_mac: row.get(17),
    })
}
