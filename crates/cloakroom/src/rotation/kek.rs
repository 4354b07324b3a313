//! Replaces the key-encryption key of a tenant, for an operator.

use cloakroom_core::access::Bucket;
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::Operation;
use cloakroom_core::keys::{self, NewKek};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;

use super::store::{self, NewRotation};
use super::{Error, Phase, Proof, key_entry, proof};

/// Creates the next key-encryption key, wraps all keys of the tenant with it, and destroys the one before it, in one
/// transaction. Returns the new version.
pub async fn rotate_kek(vault: &Vault, tenant: TenantId, requested_by: &str) -> Result<u32, Error> {
    let at = vault.clock.now().await?;
    let new = vault.keys.create_kek(tenant, at).await?;
    let (from, to) = (new.version() - 1, new.version());
    let key = (tenant, KeyPurpose::TenantKek, from);
    let statement = format!(
        "{}replaced by version: {to}\nkeys wrapped by the version: 0 of {}\ntime: {at}\n",
        proof::heading(vault, key),
        new.rewrapped(),
    );
    let proof = proof::sign(vault, statement).await?;
    let mut change = access_change::begin(vault, tenant, &[Bucket::KEYS]).await?;
    let written = replace(&mut change, &new, (tenant, from), &proof, requested_by).await;
    if let Err(error) = written {
        change.roll_back().await;
        return Err(error);
    }
    let entry = |operation, version| key_entry(tenant, KeyPurpose::TenantKek, operation, version);
    let entries = [
        entry(Operation::Create, to),
        entry(Operation::Destroy, from),
    ];
    failpoint("rotation.kek")?;
    change.commit(&entries).await?;
    vault.keys.evict(tenant).await;
    Ok(to)
}

async fn replace(
    change: &mut AccessChange<'_>,
    new: &NewKek,
    (tenant, from): (TenantId, u32),
    proof: &Proof,
    requested_by: &str,
) -> Result<(), Error> {
    let keys = new.insert(change, tenant).await?;
    change.change_keys(keys)?;
    let purpose = KeyPurpose::TenantKek;
    store::insert_proof(change, (tenant, purpose, from), proof).await?;
    let rotation = NewRotation {
        tenant,
        purpose,
        from,
        to: new.version(),
        generation: keys::count_change(change).await?,
        requested_by,
        phase: Phase::Destroyed,
    };
    store::insert(change, &rotation).await?;
    Ok(())
}
