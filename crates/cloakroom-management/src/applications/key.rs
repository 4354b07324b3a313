//! Creates, imports, lists and deletes keys of an application.

use cloakroom_core::access::{
    ApiKey, ApplicationRow, AuthenticatedRow as _, Bucket, Grants, KeyRow, LegacyKey, Permission,
    Tenant, key_digest, key_lookup,
};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids::{self, TenantId};
use cloakroom_platform::storage::Transaction;
use jiff::Timestamp;
use uuid::Uuid;

use super::application::{ApplicationKey, verified_row};
use super::find::uuid;
use super::store::StoredApplication;
use super::{Error, Filter, Requester, commit, commit_and_invalidate, event, store};

/// Enough to rotate a key without downtime, and few enough to keep track of.
const KEYS_MAX: i64 = 3;

/// A new key, with its plaintext, which is shown once.
pub struct CreatedKey {
    pub id: Uuid,
    pub key: ApiKey,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
}

impl From<&CreatedKey> for ApplicationKey {
    fn from(created: &CreatedKey) -> Self {
        Self {
            id: created.id,
            is_legacy: false,
            created_by: created.created_by,
            created_at: created.created_at,
        }
    }
}

/// Creates another key for an application; existing keys remain valid.
pub async fn create_key(
    vault: &Vault,
    requester: Requester<'_>,
    application: &str,
    template: &ResponseTemplate<'_, CreatedKey>,
) -> Result<CreatedKey, Error> {
    requester.require(Permission::ApplicationCreate)?;
    let id = uuid(application)?;
    let bucket = Bucket::of_application(id);
    let mut change = access_change::begin(vault, requester.tenant(), &[bucket]).await?;
    let created = insert_another(vault, &mut change, requester, id).await;
    let entries = |created: &CreatedKey| vec![created_entry(requester, id, &created.into())];
    commit(change, created, entries, template).await
}

/// The audit log entry of a new key, with its event.
pub(super) fn created_entry(
    requester: Requester<'_>,
    application: Uuid,
    key: &ApplicationKey,
) -> Entry {
    let entry = requester.entry(Operation::Create, EntityKind::ApplicationKey, key.id);
    entry.with_event(key.created_event(application))
}

/// Imports a key in the legacy format, which clients continue to use.
pub async fn import_key(
    vault: &Vault,
    tenant: &Tenant,
    application: &str,
    text: &Sensitive<String>,
) -> Result<ApplicationKey, Error> {
    let requester = Requester::from(tenant);
    let key = LegacyKey::parse(text.expose()).ok_or_else(not_a_legacy_key)?;
    let row = KeyRow {
        lookup: key.lookup(),
        tenant_number: tenant.id.number,
        application: uuid(application)?,
        id: ids::new_uuid(),
        key_digest: key_digest(text.expose()).to_vec(),
        expires_at: None,
    };
    let bucket = Bucket::of_application(row.application);
    let mut change = access_change::begin(vault, tenant.id, &[bucket]).await?;
    let imported = insert_legacy(vault, &mut change, requester, &row).await;
    let entries =
        |imported: &ApplicationKey| vec![created_entry(requester, row.application, imported)];
    commit(change, imported, entries, &ResponseTemplate::none()).await
}

fn not_a_legacy_key() -> Error {
    let rule = "must be of the older format: at most 100 letters, digits, underscores and dots, at least 22 of \
                them after the last underscore, with neither `_test_` nor `_prod_` in it";
    Error::Invalid(vec![FieldError::new("key", rule)])
}

async fn insert_legacy(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    requester: Requester<'_>,
    row: &KeyRow,
) -> Result<ApplicationKey, Error> {
    lock_for_another(vault, change, requester, row.application).await?;
    let row_mac = row.row_mac(vault.keys.control());
    let inserted = store::insert_key(change, row, requester.id(), &row_mac).await?;
    let in_use = || Error::Invalid(vec![FieldError::new("key", "is in the vault already")]);
    let created_at = inserted.ok_or_else(in_use)?;
    change.insert(Bucket::of_application(row.application), &row_mac)?;
    Ok(ApplicationKey {
        id: row.id,
        is_legacy: true,
        created_by: requester.id(),
        created_at,
    })
}

async fn insert_another(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    requester: Requester<'_>,
    application: Uuid,
) -> Result<CreatedKey, Error> {
    let row = lock_for_another(vault, change, requester, application).await?;
    let grants = Grants::parse(&row.grants).ok_or(Error::Altered("application"))?;
    requester.require_grantable(&vault.config.tenants, row.kind, &grants)?;
    insert(vault, change, requester, &row).await
}

/// Locks an application that has fewer keys than the maximum. It is locked before its keys are counted, so that
/// concurrent requests cannot exceed the maximum.
async fn lock_for_another(
    vault: &Vault,
    transaction: &Transaction,
    requester: Requester<'_>,
    application: Uuid,
) -> Result<ApplicationRow, Error> {
    let tenant = requester.tenant();
    let stored = store::lock(transaction, tenant, application).await?;
    let stored = stored.ok_or(Error::NotFound("application"))?;
    let row = verified_row(vault.keys.control(), tenant, &stored)?;
    if store::count_keys(transaction, tenant, application).await? >= KEYS_MAX {
        return Err(Error::TooManyKeys(KEYS_MAX));
    }
    Ok(row)
}

/// Creates a key for an application whose row is locked or new.
pub(super) async fn insert(
    vault: &Vault,
    change: &mut AccessChange<'_>,
    requester: Requester<'_>,
    application: &ApplicationRow,
) -> Result<CreatedKey, Error> {
    let control = vault.keys.control();
    let region = vault.config.vault.region.as_str();
    // Retries until the lookup value is unique, as the first one is.
    loop {
        let key = ApiKey::generate(requester.tenant_kind(), region, application.kind);
        let row = KeyRow {
            lookup: key_lookup(key.expose()),
            tenant_number: application.tenant_number,
            application: application.id,
            id: ids::new_uuid(),
            key_digest: key_digest(key.expose()).to_vec(),
            expires_at: None,
        };
        let row_mac = row.row_mac(control);
        let inserted = store::insert_key(change, &row, requester.id(), &row_mac).await?;
        if let Some(created_at) = inserted {
            change.insert(Bucket::of_application(application.id), &row_mac)?;
            return Ok(CreatedKey {
                id: row.id,
                key,
                created_by: requester.id(),
                created_at,
            });
        }
    }
}

/// Lists the keys of an application, oldest first, without their secrets.
///
/// The type of a key is that of its application, so a filter by another type returns none.
pub async fn list_keys(
    vault: &Vault,
    requester: Requester<'_>,
    application: &str,
    filter: &Filter,
) -> Result<Vec<ApplicationKey>, Error> {
    requester.require(Permission::ApplicationRead)?;
    let (control, tenant) = (vault.keys.control(), requester.tenant());
    let stored = stored(vault, requester, application).await?;
    let kind = verified_row(control, tenant, &stored)?.kind;
    let has_kind = filter.kinds.as_ref().is_none_or(|all| all.contains(&kind));
    let is_wanted = |id: &Uuid| has_kind && filter.ids.as_ref().is_none_or(|all| all.contains(id));
    let keys = store::list_keys(&vault.db, tenant, &[stored.id]).await?;
    keys.iter()
        .filter(|key| is_wanted(&key.id))
        .map(|key| ApplicationKey::of(control, tenant, key))
        .collect()
}

/// Finds one key of an application, without its secret.
pub async fn find_key(
    vault: &Vault,
    requester: Requester<'_>,
    application: &str,
    key: &str,
) -> Result<ApplicationKey, Error> {
    // A key id that is not a UUID is not found, but a missing application is reported first.
    let id = key.parse().unwrap_or(Uuid::nil());
    let only = Filter {
        ids: Some(vec![id]),
        kinds: None,
    };
    let keys = list_keys(vault, requester, application, &only).await?;
    let found = keys.into_iter().next();
    let found = found.ok_or(Error::NotFound("application key"))?;
    let entry = requester.entry(Operation::Read, EntityKind::ApplicationKey, found.id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(found)
}

/// Deletes one key of an application; the others remain valid.
pub async fn delete_key(
    vault: &Vault,
    requester: Requester<'_>,
    application: &str,
    key: &str,
) -> Result<(), Error> {
    requester.require(Permission::ApplicationDelete)?;
    let application = stored(vault, requester, application).await?.id;
    let key = key.parse().unwrap_or(Uuid::nil());
    let bucket = Bucket::of_application(application);
    let mut change = access_change::begin(vault, requester.tenant(), &[bucket]).await?;
    let deleted = store::delete_key(&change, requester.tenant(), application, key).await;
    let deleted = match deleted {
        Ok(Some(row_mac)) => change.remove(bucket, &row_mac).map_err(Error::from),
        Ok(None) => Err(Error::NotFound("application key")),
        Err(error) => Err(error.into()),
    };
    let entries = |_: &()| {
        let entry = requester.entry(Operation::Delete, EntityKind::ApplicationKey, key);
        vec![entry.with_event(event::key_deleted(application, key))]
    };
    commit_and_invalidate(vault, change, deleted, entries, &ResponseTemplate::none()).await
}

/// Deletes a key by its id alone, for an operator.
pub async fn delete_key_by_id(vault: &Vault, tenant: &Tenant, key: &str) -> Result<(), Error> {
    let id = key.parse().unwrap_or(Uuid::nil());
    let application = store::application_of_key(&vault.db, tenant.id, id).await?;
    let application = application.ok_or(Error::NotFound("application key"))?;
    delete_key(
        vault,
        Requester::Operator(tenant),
        &application.to_string(),
        key,
    )
    .await
}

/// Whether a tenant has this key.
pub async fn key_exists(vault: &Vault, tenant: TenantId, key: &str) -> Result<bool, Error> {
    let id = key.parse().unwrap_or(Uuid::nil());
    let application = store::application_of_key(&vault.db, tenant, id).await?;
    Ok(application.is_some())
}

async fn stored(
    vault: &Vault,
    requester: Requester<'_>,
    id: &str,
) -> Result<StoredApplication, Error> {
    let stored = store::find(&vault.db, requester.tenant(), uuid(id)?).await?;
    stored.ok_or(Error::NotFound("application"))
}
