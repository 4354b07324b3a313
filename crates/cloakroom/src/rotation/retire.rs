//! Destroys the old version of a key after a proof that nothing needs it, for an operator.

use cloakroom_core::access::Bucket;
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::keys::{self, State, Transition};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;

use super::store::{self, PhaseChange};
use super::{Error, Phase, Proof, Rotation, entity_id, proof};

/// Destroys the version of a tenant's key that was replaced and proved to be unused. Returns it with its proof.
pub async fn retire(
    vault: &Vault,
    tenant: TenantId,
    purpose: KeyPurpose,
) -> Result<(u32, Proof), Error> {
    let versions = vault.keys.list_versions(tenant).await?;
    let mut versions = versions.iter().filter(|key| key.purpose == purpose);
    let Some(key) = versions.find(|key| key.state == State::DecryptOnly) else {
        return Err(Error::NotProved("none was replaced".to_owned()));
    };
    let id = (tenant, purpose, key.version);
    let Some(proof) = proof::find(vault, id).await? else {
        let reason = "the scan is not complete; `cloakroom key status` shows the progress";
        return Err(Error::NotProved(reason.to_owned()));
    };
    let rotations = store::list(&vault.db).await?;
    let rotation = rotations.into_iter().find(|rotation| {
        (rotation.tenant, rotation.purpose, rotation.from) == (tenant, purpose, key.version)
    });
    let rotation = rotation.ok_or(Error::Contended)?;
    let at = vault.clock.now().await?;
    let mut change = access_change::begin(vault, tenant, &[Bucket::KEYS]).await?;
    match destroy(&mut change, &rotation, at).await {
        Ok(()) => {
            let id = entity_id(purpose, key.version);
            let (operation, entity) = (Operation::Destroy, EntityKind::EncryptionKey);
            let entry = Entry::by_system(tenant.number, operation, entity, id);
            failpoint("rotation.before_destroy")?;
            change.commit(&[entry]).await?;
            vault.keys.evict(tenant).await;
            Ok((key.version, proof))
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

async fn destroy(
    change: &mut AccessChange<'_>,
    rotation: &Rotation,
    at: Timestamp,
) -> Result<(), Error> {
    let transition = Transition {
        purpose: rotation.purpose,
        version: rotation.from,
        to: State::Destroyed,
    };
    let keys = keys::change_state(change, rotation.tenant, transition, at).await?;
    change.change_keys(keys)?;
    let changes = PhaseChange {
        generation: Some(keys::count_change(change).await?),
        ..PhaseChange::default()
    };
    match store::set_phase(change, rotation, Phase::Destroyed, changes).await? {
        true => Ok(()),
        false => Err(Error::Contended),
    }
}
