//! Making a key pair for clients to encrypt to.

use super::key::expiry;
use super::store::{self, Kept};
use super::{ClientKey, CreatedClientKey, Error};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::vault::Vault;
use crate::{ids, keys};

/// The list has no pages, so there must not be more of them than fit on one.
pub(super) const KEYS_MAX: i64 = 1_000;

/// Makes a key pair that lives until `expires_at`, or for a year. The private half stays here, sealed.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    expires_at: Option<&str>,
    reply: &Reply<'_, CreatedClientKey>,
) -> Result<CreatedClientKey, Error> {
    caller.require_somewhere(Permission::KeysCreate)?;
    let now = vault.audit.now().await?;
    let key = ClientKey {
        id: ids::new_uuid(),
        expires_at: expiry(now, expires_at).map_err(Error::Invalid)?,
    };
    let pair = cloakroom_crypto::ClientKey::generate();
    let public_key = pair.public_key().map_err(|_| keys::Error::Seal)?;
    let tenant_keys = vault.keys.of(caller.tenant).await?;
    let private = pair.expose_for_sealing();
    let kept = Kept {
        key,
        public_key: public_key.to_vec(),
        sealed: tenant_keys.seal(&key.record(&public_key), private.expose())?,
    };
    let recorded = audit::begin(vault).await?;
    let by = caller.application;
    if !store::insert(&recorded, caller.tenant, &kept, by, KEYS_MAX).await? {
        recorded.roll_back().await;
        return Err(Error::TooMany(KEYS_MAX));
    }
    let entry = Entry::of(caller, Operation::Create, EntityKind::ClientKey, key.id);
    let created = CreatedClientKey { key, public_key };
    recorded
        .commit_with(&[entry], reply.keep(&created)?)
        .await?;
    Ok(created)
}
