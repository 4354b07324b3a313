//! Starts the rotation of a key, for an operator.

use cloakroom_core::access::Bucket;
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::Operation;
use cloakroom_core::keys::{self, KeyVersion, NewVersion, State, VAULT};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::ids::TenantId;

use super::store::{self, NewRotation};
use super::{Error, Phase, Rotation, key_entry};

/// Keys of tenants that are replaced version by version.
const OF_TENANTS: [KeyPurpose; 5] = [
    KeyPurpose::Data,
    KeyPurpose::Fingerprint,
    KeyPurpose::Index,
    KeyPurpose::Reply,
    KeyPurpose::Request,
];

/// The same of the vault.
pub(super) const OF_VAULT: [KeyPurpose; 3] = [
    KeyPurpose::Control,
    KeyPurpose::AuditAuthority,
    KeyPurpose::SecurityCodeWrap,
];

/// Adds the next version of a key of a tenant or of the vault, and returns it. Nodes do the rest.
///
/// A rotation whose progress was lost continues where the states of the keys show.
pub async fn start(
    vault: &Vault,
    tenant: TenantId,
    purpose: KeyPurpose,
    requested_by: &str,
) -> Result<u32, Error> {
    let has_key = match tenant == VAULT {
        true => OF_VAULT.contains(&purpose),
        false => OF_TENANTS.contains(&purpose),
    };
    if !has_key {
        return Err(Error::Purpose(purpose.name()));
    }
    let versions = vault.keys.list_versions(tenant).await?;
    let of = |state: State| {
        let is_one = |key: &&KeyVersion| key.purpose == purpose && key.state == state;
        versions.iter().find(is_one).map(|key| key.version)
    };
    let active = of(State::Active).ok_or(keys::Error::Missing("active key of this purpose"))?;
    let mut rotation = NewRotation {
        tenant,
        purpose,
        from: active,
        to: active,
        generation: 0,
        requested_by,
        phase: Phase::Added,
    };
    // One rotation at a time: a version must not be replaced while rows are sealed again under it.
    if let Some(added) = of(State::PreActive) {
        rotation.to = added;
        return resume(vault, rotation).await;
    }
    if let Some(retiring) = of(State::Retiring) {
        (rotation.from, rotation.phase) = (retiring, Phase::Promoted);
        return resume(vault, rotation).await;
    }
    if let Some(closed) = of(State::DecryptOnly) {
        (rotation.from, rotation.phase) = (closed, Phase::Closed);
        return resume(vault, rotation).await;
    }
    let at = vault.clock.now().await?;
    let new = vault.keys.create_version(tenant, purpose, at).await?;
    rotation.to = new.version();
    let mut change = access_change::begin(vault, tenant, &[Bucket::KEYS]).await?;
    match add(&mut change, &new, rotation).await {
        Ok(()) => {
            let entry = key_entry(tenant, purpose, Operation::Create, new.version());
            change.commit(&[entry]).await?;
            Ok(new.version())
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// Inserts the row of a rotation that SQL has deleted. A rotation that has one is under way.
async fn resume(vault: &Vault, rotation: NewRotation<'_>) -> Result<u32, Error> {
    let version = rotation.from;
    let known = store::list(&vault.db).await?;
    let is_same = |known: &Rotation| {
        (known.tenant, known.purpose, known.to) == (rotation.tenant, rotation.purpose, rotation.to)
    };
    if known.iter().any(is_same) {
        return Err(Error::UnderWay { version });
    }
    let to = rotation.to;
    let mut change = access_change::begin(vault, rotation.tenant, &[Bucket::KEYS]).await?;
    let entry = key_entry(rotation.tenant, rotation.purpose, Operation::Update, to);
    if let Err(error) = insert(&mut change, rotation).await {
        change.roll_back().await;
        return Err(error);
    }
    change.commit(&[entry]).await?;
    Ok(to)
}

async fn add(
    change: &mut AccessChange<'_>,
    new: &NewVersion,
    rotation: NewRotation<'_>,
) -> Result<(), Error> {
    let keys = new.insert(change, rotation.tenant).await?;
    change.change_keys(keys)?;
    insert(change, rotation).await
}

async fn insert(change: &mut AccessChange<'_>, mut rotation: NewRotation<'_>) -> Result<(), Error> {
    rotation.generation = keys::count_change(change).await?;
    Ok(store::insert(change, &rotation).await?)
}
