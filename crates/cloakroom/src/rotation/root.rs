//! Replaces the root key, for an operator: everything that another root key wrapped is wrapped by the active one.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::keys::{Rewrapped, VAULT};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_management::tenants;

use super::{Error, proof, store};

/// What the rotation of the root key did.
#[derive(Clone, Debug)]
pub struct RootReport {
    /// The name of the active root key at its provider.
    pub root: String,
    pub rewrapped: u64,
    /// Keys that name another root key afterwards.
    pub remaining: u64,
}

/// Wraps all keys directly below a root key with the active one. The signed result states how many name another one.
///
/// With a provider that has versions of its own, this also replaces what an older version wrapped.
/// Idempotent: an interrupted rotation is completed by the next one.
pub async fn rotate_root(vault: &Vault, requested_by: &str) -> Result<RootReport, Error> {
    let mut total = vault.keys.rewrap_below_root(VAULT).await?;
    for tenant in tenants::list(vault).await? {
        let Rewrapped {
            keys,
            rewrapped,
            remaining,
        } = vault.keys.rewrap_below_root(tenant.id).await?;
        total.keys += keys;
        total.rewrapped += rewrapped;
        total.remaining += remaining;
    }
    let roots = vault.keys.root();
    // A statement without a new key would make the root key look younger.
    if total.rewrapped == 0 && !roots.has_previous() {
        return Err(Error::SameRoot);
    }
    let root = roots.active().id();
    let root = format!("{}:{}", root.provider(), root.name());
    let purpose = KeyPurpose::RootKek;
    let version = store::next_proof(&vault.db, VAULT, purpose).await?;
    let key = (VAULT, purpose, version);
    let statement = format!(
        "{}active root key: {root}\nkeys that name another root key: {} of {}\nrequested by: {requested_by}\n\
         time: {}\n",
        proof::heading(vault, key),
        total.remaining,
        total.keys,
        vault.clock.now().await?,
    );
    let proof = proof::sign(vault, statement).await?;
    let transaction = audit::begin(&vault.audit).await?;
    if let Err(error) = store::insert_proof(&transaction, key, &proof).await {
        transaction.roll_back().await;
        return Err(error.into());
    }
    let (operation, entity) = (Operation::Activate, EntityKind::EncryptionKey);
    let entry = Entry::by_system(VAULT.number, operation, entity, format!("root {root}"));
    transaction.commit(&[entry]).await?;
    Ok(RootReport {
        root,
        rewrapped: total.rewrapped,
        remaining: total.remaining,
    })
}
