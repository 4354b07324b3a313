//! The keys of an application: making, finding and deleting them.

use cloakroom_crypto::Sensitive;
use jiff::Timestamp;
use uuid::Uuid;

use super::application::{ApplicationKey, genuine_row};
use super::find::uuid;
use super::store::KeptApplication;
use super::{Asker, Error, Filter, settle, settle_and_forget, store};
use crate::access::{
    ApiKey, ApplicationRow, Authenticated as _, KeyParts, KeyRow, LegacyKey, Permission, Tenant,
    secret_mac,
};
use crate::api::Broken;
use crate::audit::{self, EntityKind, Operation};
use crate::idempotency::Reply;
use crate::ids;
use crate::storage::Transaction;
use crate::vault::Vault;

/// Enough to replace a key without a gap, and few enough to keep an eye on.
const KEYS_MAX: i64 = 3;

/// A new key, with the text that is shown only now.
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

/// Makes a further key for an application; the ones it has keep working.
pub async fn create_key(
    vault: &Vault,
    asker: Asker<'_>,
    application: &str,
    reply: &Reply<'_, CreatedKey>,
) -> Result<CreatedKey, Error> {
    asker.require(Permission::ApplicationCreate)?;
    let id = uuid(application)?;
    let recorded = audit::begin(vault).await?;
    let created = insert_further(vault, &recorded, asker, id).await;
    let entries = |created: &CreatedKey| {
        vec![asker.entry(Operation::Create, EntityKind::ApplicationKey, created.id)]
    };
    settle(recorded, created, entries, reply).await
}

/// Takes over a key of the older format, whose holder goes on using it.
pub async fn import_key(
    vault: &Vault,
    tenant: &Tenant,
    application: &str,
    text: &Sensitive<String>,
) -> Result<ApplicationKey, Error> {
    let asker = Asker::from(tenant);
    let key = LegacyKey::parse(text.expose()).ok_or_else(no_legacy_key)?;
    let id = uuid(application)?;
    let recorded = audit::begin(vault).await?;
    let imported = insert_legacy(vault, &recorded, asker, (id, key, text)).await;
    let entries = |imported: &ApplicationKey| {
        vec![asker.entry(Operation::Create, EntityKind::ApplicationKey, imported.id)]
    };
    settle(recorded, imported, entries, &Reply::none()).await
}

fn no_legacy_key() -> Error {
    let rule = "must be of the older format: 20 to 100 letters, digits, underscores and dots, with \
                neither `_test_` nor `_prod_` in it";
    Error::Invalid(vec![Broken::new("key", rule)])
}

async fn insert_legacy(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    imported: (Uuid, LegacyKey<'_>, &Sensitive<String>),
) -> Result<ApplicationKey, Error> {
    let (application, key, text) = imported;
    let row = lock_for_further(vault, transaction, asker, application).await?;
    let control = vault.keys.control();
    let row = KeyRow {
        lookup: key.lookups(control).into_iter().next().unwrap_or_default(),
        tenant_number: row.tenant_number,
        application,
        id: ids::new_uuid(),
        secret_mac: secret_mac(control, text.expose()).to_vec(),
        expires_at: None,
    };
    let row_mac = row.row_mac(control);
    let inserted = store::insert_key(transaction, &row, asker.id(), &row_mac).await?;
    let in_use = || Error::Invalid(vec![Broken::new("key", "is in the vault already")]);
    Ok(ApplicationKey {
        id: row.id,
        is_legacy: true,
        created_by: asker.id(),
        created_at: inserted.ok_or_else(in_use)?,
    })
}

async fn insert_further(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    application: Uuid,
) -> Result<CreatedKey, Error> {
    let row = lock_for_further(vault, transaction, asker, application).await?;
    insert(vault, transaction, asker, &row).await
}

/// Locks an application that has room for a key. It is locked before its keys are counted, so that they
/// cannot become too many at once.
async fn lock_for_further(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    application: Uuid,
) -> Result<ApplicationRow, Error> {
    let tenant = asker.tenant();
    let kept = store::lock(transaction, tenant, application).await?;
    let kept = kept.ok_or(Error::NotFound("application"))?;
    let row = genuine_row(vault.keys.control(), tenant, &kept)?;
    if store::count_keys(transaction, tenant, application).await? >= KEYS_MAX {
        return Err(Error::TooManyKeys(KEYS_MAX));
    }
    Ok(row)
}

/// Makes a key for an application whose row is locked or new.
pub(super) async fn insert(
    vault: &Vault,
    transaction: &Transaction,
    asker: Asker<'_>,
    application: &ApplicationRow,
) -> Result<CreatedKey, Error> {
    let control = vault.keys.control();
    let region = vault.config.vault.region.as_str();
    // Until one is found by something that finds no other key, which nearly always is the first.
    loop {
        let key = ApiKey::generate(asker.tenant_kind(), region, application.kind);
        let parts = KeyParts::parse(key.expose()).ok_or(Error::Unauthorized)?;
        let row = KeyRow {
            lookup: parts.lookup.to_owned(),
            tenant_number: application.tenant_number,
            application: application.id,
            id: ids::new_uuid(),
            secret_mac: secret_mac(control, key.expose()).to_vec(),
            expires_at: None,
        };
        let row_mac = row.row_mac(control);
        let inserted = store::insert_key(transaction, &row, asker.id(), &row_mac).await?;
        if let Some(created_at) = inserted {
            return Ok(CreatedKey {
                id: row.id,
                key,
                created_by: asker.id(),
                created_at,
            });
        }
    }
}

/// Lists the keys of an application, the oldest first, without their texts.
///
/// The type of a key is that of its application: of another type there are none.
pub async fn list_keys(
    vault: &Vault,
    asker: Asker<'_>,
    application: &str,
    filter: &Filter,
) -> Result<Vec<ApplicationKey>, Error> {
    asker.require(Permission::ApplicationRead)?;
    let (control, tenant) = (vault.keys.control(), asker.tenant());
    let kept = kept(vault, asker, application).await?;
    let kind = genuine_row(control, tenant, &kept)?.kind;
    let has_kind = filter.kinds.as_ref().is_none_or(|all| all.contains(&kind));
    let is_wanted = |id: &Uuid| has_kind && filter.ids.as_ref().is_none_or(|all| all.contains(id));
    let keys = store::list_keys(&vault.db, tenant, &[kept.id]).await?;
    keys.iter()
        .filter(|key| is_wanted(&key.id))
        .map(|key| ApplicationKey::of(control, tenant, key))
        .collect()
}

/// Finds one key of an application, without its text.
pub async fn find_key(
    vault: &Vault,
    asker: Asker<'_>,
    application: &str,
    key: &str,
) -> Result<ApplicationKey, Error> {
    // A name that is no UUID is no key's, but the application is looked for all the same.
    let id = key.parse().unwrap_or(Uuid::nil());
    let only = Filter {
        ids: Some(vec![id]),
        kinds: None,
    };
    let keys = list_keys(vault, asker, application, &only).await?;
    let found = keys.into_iter().next();
    let found = found.ok_or(Error::NotFound("application key"))?;
    let entry = asker.entry(Operation::Read, EntityKind::ApplicationKey, found.id);
    vault.audit.note(vec![entry]).await?;
    Ok(found)
}

/// Deletes one key of an application; the others keep working.
pub async fn delete_key(
    vault: &Vault,
    asker: Asker<'_>,
    application: &str,
    key: &str,
) -> Result<(), Error> {
    asker.require(Permission::ApplicationDelete)?;
    let application = kept(vault, asker, application).await?.id;
    let key = key.parse().unwrap_or(Uuid::nil());
    let recorded = audit::begin(vault).await?;
    let deleted = store::delete_key(&recorded, asker.tenant(), application, key).await;
    let deleted = match deleted {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::NotFound("application key")),
        Err(error) => Err(error.into()),
    };
    let entries = |_: &()| vec![asker.entry(Operation::Delete, EntityKind::ApplicationKey, key)];
    settle_and_forget(vault, recorded, deleted, entries, &Reply::none()).await
}

/// Deletes a key by its id alone, for an operator.
pub(crate) async fn delete_key_by_id(
    vault: &Vault,
    tenant: &Tenant,
    key: &str,
) -> Result<(), Error> {
    let id = key.parse().unwrap_or(Uuid::nil());
    let application = store::application_of_key(&vault.db, tenant.id, id).await?;
    let application = application.ok_or(Error::NotFound("application key"))?;
    delete_key(
        vault,
        Asker::Operator(tenant),
        &application.to_string(),
        key,
    )
    .await
}

async fn kept(vault: &Vault, asker: Asker<'_>, id: &str) -> Result<KeptApplication, Error> {
    let kept = store::find(&vault.db, asker.tenant(), uuid(id)?).await?;
    kept.ok_or(Error::NotFound("application"))
}
