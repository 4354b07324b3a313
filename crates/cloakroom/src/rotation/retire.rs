//! Destroys the old version of a key after a proof that nothing needs it, for an operator.

use cloakroom_core::access::Bucket;
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::Operation;
use cloakroom_core::keys::{self, State, Transition};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::fingerprint_pairs;
use jiff::Timestamp;

use super::store;
use super::{Error, Phase, Proof, Rotation, key_entry, proof};

/// Destroys the version of a key of a tenant or of the vault that was replaced and proved to be unused. Returns it with its proof.
pub async fn retire(
    vault: &Vault,
    tenant: TenantId,
    purpose: KeyPurpose,
) -> Result<(u32, Proof), Error> {
    // This process may have started before the audit authority was replaced.
    vault.keys.audit_authority().reload().await?;
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
    if !proof::is_signed_by_active(vault, &proof) {
        store::move_to(&vault.db, &rotation, Phase::Proving).await?;
        let reason = "the audit authority was replaced after the scan; nodes repeat it";
        return Err(Error::NotProved(reason.to_owned()));
    }
    if purpose == KeyPurpose::Fingerprint {
        // From here on, searches by old fingerprints find nothing.
        fingerprint_pairs::delete_all(&vault.db, tenant).await?;
        failpoint("rotation.pairs_deleted")?;
    }
    let at = vault.clock.now().await?;
    let mut change = access_change::begin(vault, tenant, &[Bucket::KEYS]).await?;
    match destroy(&mut change, &rotation, at).await {
        Ok(()) => {
            let entry = key_entry(tenant, purpose, Operation::Destroy, key.version);
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
    let generation = Some(keys::count_change(change).await?);
    match store::set_phase(change, rotation, Phase::Destroyed, generation).await? {
        true => Ok(()),
        false => Err(Error::Contended),
    }
}
