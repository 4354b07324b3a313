//! The audit authority: the key pair that certifies the keys with which nodes sign the audit log.

use std::sync::Arc;

use cloakroom_crypto::{
    AuditAuthority as Purpose, LogKey, LogPublicKey, LogSignature, WrapContext,
    verify_log_signature,
};
use cloakroom_platform::storage::Db;

use super::keyring::usable;
use super::store;
use super::{Error, RootKey};

/// Signs with the authority's key, which is unwrapped for each signature and then dropped: a copy of a node's memory
/// contains it only if it is taken while the node certifies a key.
pub struct AuditAuthority {
    db: Db,
    root: Arc<RootKey>,
    environment: Arc<str>,
    /// One for each version, the active one first.
    public_keys: Vec<LogPublicKey>,
}

impl AuditAuthority {
    pub(super) async fn load(
        db: &Db,
        root: &Arc<RootKey>,
        environment: &Arc<str>,
    ) -> Result<Self, Error> {
        let mut authority = Self {
            db: db.clone(),
            root: root.clone(),
            environment: environment.clone(),
            public_keys: Vec::new(),
        };
        for key in authority.unwrap_all().await? {
            authority.public_keys.push(*key.public_key());
        }
        Ok(authority)
    }

    /// The public keys by which the log can be verified, the active one first.
    pub fn public_keys(&self) -> &[LogPublicKey] {
        &self.public_keys
    }

    /// Signs a message, which starts with a domain of its own.
    pub async fn sign(&self, message: &[u8]) -> Result<LogSignature, Error> {
        let keys = self.unwrap_all().await?;
        let active = keys.first().ok_or(Error::SystemKeysLost)?;
        Ok(active.sign(message))
    }

    /// Whether any version of the authority's key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public_keys
            .iter()
            .any(|key| verify_log_signature(key, message, signature))
    }

    async fn unwrap_all(&self) -> Result<Vec<LogKey>, Error> {
        let rows = store::list_system_keys(&self.db).await?;
        let mut keys = Vec::new();
        for row in usable::<Purpose>(&rows) {
            let context = WrapContext {
                environment: &self.environment,
                tenant: None,
                version: row.version,
            };
            let key = self.root.unwrap::<Purpose>(&row.wrapped, &context).await?;
            keys.push(LogKey::of_authority(&key).map_err(|_| Error::Seal)?);
        }
        match keys.is_empty() {
            true => Err(Error::SystemKeysLost),
            false => Ok(keys),
        }
    }
}
