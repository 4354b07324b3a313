//! Creates client encryption keys.

use cloakroom_core::access::{Container, Permission};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_core::{access, keys};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids;

use super::key::{Binding, expiry};
use super::store::{self, StoredKey};
use super::{ClientKey, CreatedClientKey, Error};

/// The list is not paginated, so the number of keys is limited.
pub(super) const KEYS_MAX: i64 = 1_000;

/// A key to create; nothing in it is validated yet.
#[derive(Clone, Default)]
pub struct NewKey {
    pub expires_at: Option<String>,
    pub application_id: Option<String>,
    pub container: Option<String>,
}

/// Creates a key pair. The private key is stored sealed.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    new: NewKey,
    template: &ResponseTemplate<'_, CreatedClientKey>,
) -> Result<CreatedClientKey, Error> {
    let create = || create_once(vault, caller, new.clone(), template);
    with_current_keys(&vault.keys, caller, create).await
}

async fn create_once(
    vault: &Vault,
    caller: &Caller,
    new: NewKey,
    template: &ResponseTemplate<'_, CreatedClientKey>,
) -> Result<CreatedClientKey, Error> {
    caller.require_anywhere(Permission::KeysCreate)?;
    let key = validate(vault, caller, new).await?;
    let pair = cloakroom_crypto::ClientKey::generate();
    let public_key = pair.public_key().map_err(|_| keys::Error::Seal)?;
    let tenant_keys = vault.keys.of(caller.tenant).await?;
    let private = pair.expose_for_sealing();
    let stored = StoredKey {
        key: key.clone(),
        public_key: public_key.to_vec(),
        sealed: tenant_keys.seal(&key.record(&public_key), private.expose())?,
    };
    let transaction = audit::begin(&vault.audit).await?;
    let by = caller.application;
    match store::insert(&transaction, caller.tenant, &stored, by, KEYS_MAX).await {
        Ok(true) => {}
        Ok(false) => {
            transaction.roll_back().await;
            return Err(Error::TooMany(KEYS_MAX));
        }
        Err(error) => {
            transaction.roll_back().await;
            return Err(error.into());
        }
    }
    let entry = Entry::new(caller, Operation::Create, EntityKind::ClientKey, key.id);
    let created = CreatedClientKey { key, public_key };
    transaction
        .commit_with(&[entry], template.render_pending(&created)?)
        .await?;
    Ok(created)
}

/// Validates all attributes, so that one response reports all validation errors.
async fn validate(vault: &Vault, caller: &Caller, new: NewKey) -> Result<ClientKey, Error> {
    let mut broken = Vec::new();
    let now = vault.clock.now().await?;
    let lifetime = vault.config.client_encryption.default_lifetime;
    let expires_at = expiry(now, new.expires_at.as_deref(), lifetime);
    let expires_at = expires_at.map_err(|rule| broken.push(rule)).ok();
    let application = match new.application_id {
        Some(id) if access::application_exists(&vault.db, caller.tenant, &id).await? => {
            id.parse().ok()
        }
        Some(_) => {
            let rule = "must be the id of an application of the tenant";
            broken.push(FieldError::new("application_id", rule));
            None
        }
        None => None,
    };
    let container = new.container.and_then(|text| {
        let parsed = Container::parse(&text).ok();
        if parsed.is_none() {
            let rule = "must be a path such as /pci/high/";
            broken.push(FieldError::new("container", rule));
        }
        parsed
    });
    match expires_at {
        Some(expires_at) if broken.is_empty() => Ok(ClientKey {
            id: ids::new_uuid(),
            expires_at,
            binding: Binding {
                application,
                container,
            },
        }),
        _ => Err(Error::Invalid(broken)),
    }
}
