//! Records actions on the root key and on keys of the vault in the audit log.
//!
//! Entries belong to the vault, not to a tenant. The id of an entry names the key: its purpose and version, or the root
//! key by its id.

use cloakroom::Vault;
use cloakroom::audit::{self, EntityKind, Entry, Operation, Operator, VAULT};
use cloakroom::cryptoperiods;
use cloakroom::storage::Error;
use cloakroom_crypto::KeyPurpose;
use cloakroom_custody::shares::Submission;

/// Keys that are created with the vault.
const VAULT_KEYS: [KeyPurpose; 3] = [
    KeyPurpose::Control,
    KeyPurpose::AuditAuthority,
    KeyPurpose::SecurityCodeWrap,
];

fn entry(operation: Operation, id: impl Into<String>) -> Entry {
    Entry::by_system(VAULT, operation, EntityKind::EncryptionKey, id)
}

/// Records the keys that were created with the vault, before it has its first tenant. A command that ended in between
/// is made up for by the next one.
pub(crate) async fn record_vault_keys(vault: &Vault) -> Result<(), Error> {
    // Keys of deleted tenants remain as rows.
    let counts = cryptoperiods::count_keys(&vault.db).await?;
    if counts.iter().any(|it| it.purpose == KeyPurpose::TenantKek) {
        return Ok(());
    }
    let root = vault.keys.root().active().id();
    let mut entries = vec![entry(Operation::Use, format!("root {}", root.name()))];
    let created =
        VAULT_KEYS.map(|purpose| entry(Operation::Create, format!("{}-1", purpose.name())));
    entries.extend(created);
    audit::begin(&vault.audit).await?.commit(&entries).await
}

/// Records what custodians did with the root key of this vault.
pub(crate) async fn record_ceremony(
    vault: &Vault,
    operation: Operation,
    what: &str,
) -> Result<(), Error> {
    let root = vault.keys.root().active().id();
    let entries = [entry(operation, format!("root {}: {what}", root.name()))];
    audit::begin(&vault.audit).await?.commit(&entries).await
}

/// Records who submitted the shares that unsealed this node.
pub(crate) async fn record_shares(vault: &Vault, shares: &[Submission]) -> Result<(), Error> {
    let root = vault.keys.root().active().id();
    let entries = shares.iter().map(|share| {
        let entry = entry(
            Operation::Use,
            format!("root {}: share {}", root.name(), share.number),
        );
        match Operator::parse(&share.operator) {
            Some(operator) => entry.with_operator(operator),
            None => entry,
        }
    });
    let entries: Vec<Entry> = entries.collect();
    audit::begin(&vault.audit).await?.commit(&entries).await
}
