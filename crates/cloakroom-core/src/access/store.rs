//! SQL statements for authentication, and for verification of row MACs.

use std::time::Duration;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::row_mac::{ApplicationRow, AuthenticatedRow as _, KeyRow, SessionRow, TenantRow};
use super::{
    AccessStates, ApplicationKind, Bucket, Stale, StoredBucket, TenantKind, is_legacy_lookup,
};
use crate::keys::ControlKey;
use crate::{access_state_columns, application_bucket, application_bucket_macs, join_access_state};

/// A key of an application or of a session.
pub(crate) enum AnyKey {
    Key(KeyRow),
    Session(SessionRow),
}

impl AnyKey {
    pub(crate) fn id(&self) -> Uuid {
        match self {
            Self::Key(key) => key.id,
            Self::Session(session) => session.id,
        }
    }

    pub(crate) fn is_legacy(&self) -> bool {
        matches!(self, Self::Key(key) if is_legacy_lookup(&key.lookup))
    }

    pub(crate) fn digest(&self) -> &[u8] {
        match self {
            Self::Key(key) => &key.key_digest,
            Self::Session(session) => &session.key_digest,
        }
    }

    pub(crate) fn is_genuine(&self, control: &ControlKey, row_mac: &[u8]) -> bool {
        match self {
            Self::Key(key) => key.is_genuine(control, row_mac),
            Self::Session(session) => session.is_genuine(control, row_mac),
        }
    }
}

/// A key, the rows that determine its holder's access, and the MAC of each row.
pub(crate) struct Credential {
    pub key: AnyKey,
    pub key_mac: Vec<u8>,
    pub application: ApplicationRow,
    pub application_mac: Vec<u8>,
    pub tenant: TenantRow,
    pub tenant_mac: Vec<u8>,
    pub tenant_bucket: StoredBucket,
    /// The bucket of the application and its keys.
    pub application_bucket: StoredBucket,
    /// Time until the key or the application expires, measured when the database responded.
    pub expires_in: Option<Duration>,
}

impl Credential {
    /// A row that matches no key, so that a failed lookup does the same work as a successful one.
    pub(crate) fn placeholder() -> Self {
        let (id, mac) = (Uuid::nil(), vec![0; 36]);
        let tenant = TenantId {
            number: 0,
            uuid: id,
        };
        Self {
            key: AnyKey::Key(KeyRow {
                lookup: String::new(),
                tenant_number: 0,
                application: id,
                id,
                key_digest: vec![0; 32],
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
            tenant_bucket: StoredBucket::empty(),
            application_bucket: StoredBucket::empty(),
            expires_in: None,
        }
    }

    /// Verifies that tenant, application and key are current. Sessions are in no bucket: decision 27.
    pub(crate) fn verify_current(
        &self,
        verify: impl Fn(i32, Bucket, &StoredBucket) -> Result<(), Stale>,
    ) -> Result<(), Stale> {
        let tenant = self.tenant.id.number;
        let bucket = Bucket::of_application(self.application.id);
        verify(tenant, Bucket::TENANT, &self.tenant_bucket)?;
        verify(tenant, bucket, &self.application_bucket)?;
        let is_member = self.tenant_bucket.contains(&self.tenant_mac)
            && self.application_bucket.contains(&self.application_mac)
            && match &self.key {
                AnyKey::Key(_) => self.application_bucket.contains(&self.key_mac),
                AnyKey::Session(_) => true,
            };
        match is_member {
            true => Ok(()),
            false => Err(Stale::Inconsistent),
        }
    }
}

/// Columns of the key's application and tenant, for both tables of keys.
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
                   ::double precision,
               ",
            access_state_columns!("tenant_state", "array[tenant.row_mac]"),
            ",
               ",
            access_state_columns!(
                "application_state",
                application_bucket_macs!("application.tenant_id", "application.application_id")
            )
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
            ".tenant_id",
            join_access_state!("tenant_state", "tenant.tenant_id", "0"),
            join_access_state!(
                "application_state",
                "application.tenant_id",
                application_bucket!("application.application_id")
            )
        )
    };
}

macro_rules! holder_is_active {
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
    APPLICATION_EXISTS: "access::application_exists" =
        "select true
        from application
        where tenant_id = $1
          and application_id = $2
          and (expires_at is null or expires_at > now())";
    FIND_APPLICATION: "access::find_application" = concat!(
        "select application_id, name, kind, grants, expires_at, application.row_mac,
               ", access_state_columns!("state", application_bucket_macs!("$1", "$2")), "
        from application",
        join_access_state!("state", "$1", application_bucket!("$2")), "
        where application.tenant_id = $1
          and application_id = $2
          and (expires_at is null or expires_at > now())");
    FIND_TENANT: "access::find_tenant" = concat!(
        "select tenant.tenant_id, public_id, name, kind, settings, quotas, deleted_at, tenant.row_mac,
               ", access_state_columns!("state", "array[tenant.row_mac]"), "
        from tenant",
        join_access_state!("state", "$1", "0"), "
        where tenant.tenant_id = $1
          and deleted_at is null");
    LIST_KEYS: "access::list_keys" =
        "select lookup, application_id, key_id, key_digest, expires_at, row_mac
        from application_key
        where tenant_id = $1
          and (application_id, key_id) > ($2, $3)
        order by application_id, key_id
        limit $4";
    // Not limited to a tenant: the key determines the tenant.
    FIND_CREDENTIAL: "access::find_credential" = concat!(
        "select key.lookup, key.tenant_id, key.application_id, key.key_id, key.key_digest,
               key.expires_at, key.row_mac, ", holder_columns!("key"), "
        from application_key key ", holder_joins!("key"), "
        where key.lookup = $1
          and (key.expires_at is null or key.expires_at > now())
          and ", holder_is_active!());
    // The same for sessions.
    FIND_SESSION: "access::find_session" = concat!(
        "select session.lookup, session.tenant_id, session.application_id, session.session_id,
               session.key_digest, session.expires_at, session.row_mac, ",
               holder_columns!("session"), ",
               session.nonce_digest, session.grants
        from session ", holder_joins!("session"), "
        where session.lookup = $1
          and session.expires_at > now()
          and ", holder_is_active!());
}

/// Lists tenants after the given number, in order, each with its MAC.
pub(crate) async fn list_tenants(
    db: &Db,
    after: i32,
    limit: i64,
) -> Result<Vec<(TenantRow, Vec<u8>)>, Error> {
    let rows = db.read(&LIST_TENANTS, &[&after, &limit]).await?;
    Ok(rows.iter().filter_map(to_tenant).collect())
}

/// Lists applications after the given id, in order, each with its MAC.
pub(crate) async fn list_applications(
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
        .filter_map(|row| to_application(tenant, row))
        .collect())
}

/// Whether a tenant has an application with this id that has not expired.
pub async fn application_exists(db: &Db, tenant: TenantId, id: &str) -> Result<bool, Error> {
    let Ok(id) = id.parse::<Uuid>() else {
        return Ok(false);
    };
    let params: Params<'_> = &[&tenant.number, &id];
    let row = db.read_optional(&APPLICATION_EXISTS, params).await?;
    Ok(row.is_some())
}

/// An application as stored, with its bucket. Not verified yet.
pub(crate) struct StoredApplication {
    pub row: ApplicationRow,
    pub row_mac: Vec<u8>,
    pub bucket: StoredBucket,
}

impl StoredApplication {
    pub(crate) fn verify_current(
        &self,
        states: &AccessStates,
        control: &ControlKey,
    ) -> Result<(), Stale> {
        let place = Bucket::of_application(self.row.id);
        states.verify(control, self.row.tenant_number, place, &self.bucket)?;
        match self.bucket.contains(&self.row_mac) {
            true => Ok(()),
            false => Err(Stale::Inconsistent),
        }
    }
}

/// A tenant as stored, with its bucket. Not verified yet.
pub(crate) struct StoredTenant {
    pub row: TenantRow,
    pub row_mac: Vec<u8>,
    pub bucket: StoredBucket,
}

/// Finds an application that has not expired.
pub(crate) async fn find_application(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredApplication>, Error> {
    let params: Params<'_> = &[&tenant.number, &id];
    let row = db.read_optional(&FIND_APPLICATION, params).await?;
    Ok(row.and_then(|found| {
        let (row, row_mac) = to_application(tenant, &found)?;
        let bucket = StoredBucket::read(&found, 6);
        Some(StoredApplication {
            row,
            row_mac,
            bucket,
        })
    }))
}

/// Finds a tenant that is not deleted by its number.
pub(crate) async fn find_tenant(db: &Db, number: i32) -> Result<Option<StoredTenant>, Error> {
    let row = db.read_optional(&FIND_TENANT, &[&number]).await?;
    Ok(row.and_then(|found| {
        let (row, row_mac) = to_tenant(&found)?;
        let bucket = StoredBucket::read(&found, 8);
        Some(StoredTenant {
            row,
            row_mac,
            bucket,
        })
    }))
}

fn to_tenant(row: &Row) -> Option<(TenantRow, Vec<u8>)> {
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
}

fn to_application(tenant: TenantId, row: &Row) -> Option<(ApplicationRow, Vec<u8>)> {
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

/// Lists keys after the given application and key, in order, each with its MAC.
/// Position in the list of all keys of a tenant.
pub(crate) struct KeyPosition {
    pub(crate) application: Uuid,
    pub(crate) key: Uuid,
}

pub(crate) async fn list_keys(
    db: &Db,
    tenant: TenantId,
    after: KeyPosition,
    limit: i64,
) -> Result<Vec<(KeyRow, Vec<u8>)>, Error> {
    let rows = db
        .read(
            &LIST_KEYS,
            &[&tenant.number, &after.application, &after.key, &limit],
        )
        .await?;
    let to_key = |row: &Row| {
        let key = KeyRow {
            lookup: row.get(0),
            tenant_number: tenant.number,
            application: row.get(1),
            id: row.get(2),
            key_digest: row.get(3),
            expires_at: row.get(4),
        };
        (key, row.get(5))
    };
    Ok(rows.iter().map(to_key).collect())
}

/// Finds an unexpired key by its lookup value.
pub(crate) async fn find_credential(db: &Db, lookup: &str) -> Result<Option<Credential>, Error> {
    let row = db.read_optional(&FIND_CREDENTIAL, &[&lookup]).await?;
    let key = |row: &Row| {
        AnyKey::Key(KeyRow {
            lookup: row.get(0),
            tenant_number: row.get(1),
            application: row.get(2),
            id: row.get(3),
            key_digest: row.get(4),
            expires_at: row.get(5),
        })
    };
    Ok(row.as_ref().and_then(|row| credential(row, key(row))))
}

/// Finds an unexpired session by the lookup part of its key.
pub(crate) async fn find_session(db: &Db, lookup: &str) -> Result<Option<Credential>, Error> {
    let row = db.read_optional(&FIND_SESSION, &[&lookup]).await?;
    let session = |row: &Row| {
        AnyKey::Session(SessionRow {
            lookup: row.get(0),
            tenant_number: row.get(1),
            application: row.get(2),
            id: row.get(3),
            key_digest: row.get(4),
            nonce_digest: row.get(27),
            grants: row.get(28),
            expires_at: row.get(5),
        })
    };
    Ok(row.as_ref().and_then(|row| credential(row, session(row))))
}

fn credential(row: &Row, key: AnyKey) -> Option<Credential> {
    let tenant_number: i32 = row.get(1);
    let application_id: Uuid = row.get(2);
    let expires_in: Option<f64> = row.get(18);
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
        tenant_bucket: StoredBucket::read(row, 19),
        application_bucket: StoredBucket::read(row, 23),
        expires_in: expires_in
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
    })
}
