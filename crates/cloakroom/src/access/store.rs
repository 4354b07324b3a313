//! Every SQL statement about tenants, applications and their keys.

use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use super::row_mac::{ApplicationRow, Authenticated as _, KeyRow, SessionRow, TenantRow};
use super::{ApplicationKind, TenantKind, is_legacy_lookup};
use crate::ids::TenantId;
use crate::keys::ControlKey;
use crate::storage::{Db, Error, statements};

/// A key of an application, or of a session.
pub(super) enum HeldKey {
    Key(KeyRow),
    Session(SessionRow),
}

impl HeldKey {
    pub(super) fn id(&self) -> Uuid {
        match self {
            Self::Key(key) => key.id,
            Self::Session(session) => session.id,
        }
    }

    pub(super) fn is_legacy(&self) -> bool {
        matches!(self, Self::Key(key) if is_legacy_lookup(&key.lookup))
    }

    pub(super) fn secret_mac(&self) -> &[u8] {
        match self {
            Self::Key(key) => &key.secret_mac,
            Self::Session(session) => &session.secret_mac,
        }
    }

    pub(super) fn is_genuine(&self, control: &ControlKey, row_mac: &[u8]) -> bool {
        match self {
            Self::Key(key) => key.is_genuine(control, row_mac),
            Self::Session(session) => session.is_genuine(control, row_mac),
        }
    }
}

/// A key with everything that its holder's rights depend on, and the digests over each row.
pub(super) struct Credential {
    pub key: HeldKey,
    pub key_mac: Vec<u8>,
    pub application: ApplicationRow,
    pub application_mac: Vec<u8>,
    pub tenant: TenantRow,
    pub tenant_mac: Vec<u8>,
    /// How long it is until key or application expire, counted from when the database answered.
    pub left: Option<Duration>,
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
            key: HeldKey::Key(KeyRow {
                lookup: String::new(),
                tenant_number: 0,
                application: id,
                id,
                secret_mac: mac.clone(),
                expires_at: None,
            }),
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
                deleted_at: None,
            },
            tenant_mac: mac,
            left: None,
        }
    }
}

/// What is read of whoever holds a key, wherever the key is kept.
macro_rules! holder_columns {
    ($key:literal) => {
        concat!(
            "application.name, application.kind, application.grants, application.expires_at,
               application.row_mac,
               tenant.public_id, tenant.name, tenant.kind, tenant.settings, tenant.quotas,
               tenant.row_mac,
               extract(epoch from least(",
            $key,
            ".expires_at, application.expires_at) - now())
                   ::double precision"
        )
    };
}

macro_rules! holder_joins {
    ($key:literal) => {
        concat!(
            "
        join application
          on application.tenant_id = ",
            $key,
            ".tenant_id
         and application.application_id = ",
            $key,
            ".application_id
        join tenant
          on tenant.tenant_id = ",
            $key,
            ".tenant_id"
        )
    };
}

macro_rules! holder_is_there {
    () => {
        "(application.expires_at is null or application.expires_at > now())
          and tenant.deleted_at is null"
    };
}

statements! {
    LIST_TENANTS: "access::list_tenants" =
        "select tenant_id, public_id, name, kind, settings, quotas, deleted_at, row_mac
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
    // Starts without a tenant: the key's text is what names it.
    FIND_CREDENTIAL: "access::find_credential" = concat!(
        "select key.lookup, key.tenant_id, key.application_id, key.key_id, key.secret_mac,
               key.expires_at, key.row_mac, ", holder_columns!("key"), "
        from application_key key ", holder_joins!("key"), "
        where key.lookup = any($1::text[])
          and (key.expires_at is null or key.expires_at > now())
          and ", holder_is_there!());
    // The same for sessions.
    FIND_SESSION: "access::find_session" = concat!(
        "select session.lookup, session.tenant_id, session.application_id, session.session_id,
               session.secret_mac, session.expires_at, session.row_mac, ",
               holder_columns!("session"), ",
               session.nonce_mac, session.grants
        from session ", holder_joins!("session"), "
        where session.lookup = $1
          and session.expires_at > now()
          and ", holder_is_there!());
}

/// Tenants after the given number, in order, each with its digest.
pub(super) async fn list_tenants(
    db: &Db,
    after: i32,
    limit: i64,
) -> Result<Vec<(TenantRow, Vec<u8>)>, Error> {
    let rows = db.read(&LIST_TENANTS, &[&after, &limit]).await?;
    let kept_tenant = |row: &Row| {
        let tenant = TenantRow {
            id: TenantId {
                number: row.get(0),
                uuid: row.get(1),
            },
            name: row.get(2),
            kind: TenantKind::from_number(row.get(3))?,
            settings: row.get(4),
            quotas: row.get(5),
            deleted_at: row.get(6),
        };
        Some((tenant, row.get(7)))
    };
    Ok(rows.iter().filter_map(kept_tenant).collect())
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

/// Finds a key that is not expired, by what its text may be found by.
pub(super) async fn find_credential(
    db: &Db,
    lookups: &[String],
) -> Result<Option<Credential>, Error> {
    let row = db.read_optional(&FIND_CREDENTIAL, &[&lookups]).await?;
    let key = |row: &Row| {
        HeldKey::Key(KeyRow {
            lookup: row.get(0),
            tenant_number: row.get(1),
            application: row.get(2),
            id: row.get(3),
            secret_mac: row.get(4),
            expires_at: row.get(5),
        })
    };
    Ok(row.as_ref().and_then(|row| credential(row, key(row))))
}

/// Finds a session that is not expired, by the look-up part of its key.
pub(super) async fn find_session(db: &Db, lookup: &str) -> Result<Option<Credential>, Error> {
    let row = db.read_optional(&FIND_SESSION, &[&lookup]).await?;
    let session = |row: &Row| {
        HeldKey::Session(SessionRow {
            lookup: row.get(0),
            tenant_number: row.get(1),
            application: row.get(2),
            id: row.get(3),
            secret_mac: row.get(4),
            nonce_mac: row.get(19),
            grants: row.get(20),
            expires_at: row.get(5),
        })
    };
    Ok(row.as_ref().and_then(|row| credential(row, session(row))))
}

fn credential(row: &Row, key: HeldKey) -> Option<Credential> {
    let tenant_number: i32 = row.get(1);
    let application_id: Uuid = row.get(2);
    let left: Option<f64> = row.get(18);
    Some(Credential {
        key,
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
            deleted_at: None,
        },
        tenant_mac: row.get(17),
        left: left.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
    })
}
