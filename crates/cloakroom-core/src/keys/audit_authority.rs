//! The audit authority: the key pair that certifies the keys with which nodes sign the audit log.

use std::pin::Pin;
use std::sync::Arc;

use cloakroom_crypto::{
    AuditAuthority as Purpose, LogKey, LogPublicKey, LogSignature, verify_log_signature,
};

use super::Error;
use super::load::Loader;

/// Signs with the authority's key, which is unwrapped for each signature and then dropped: a copy of a node's memory
/// contains it only if it is taken while the node certifies a key.
pub struct AuditAuthority {
    loader: Arc<Loader>,
    /// One for each version, the active one first.
    public_keys: Vec<LogPublicKey>,
}

impl AuditAuthority {
    pub(super) async fn load(loader: &Arc<Loader>) -> Result<Self, Error> {
        let keys = unwrap_all(loader).await?;
        Ok(Self {
            loader: loader.clone(),
            public_keys: keys.iter().map(|key| *key.public_key()).collect(),
        })
    }

    /// The public keys by which the log can be verified, the active one first.
    pub fn public_keys(&self) -> &[LogPublicKey] {
        &self.public_keys
    }

    /// Signs a message, which starts with a domain of its own.
    pub async fn sign(&self, message: &[u8]) -> Result<LogSignature, Error> {
        let keys = unwrap_all(&self.loader).await?;
        let active = keys.first().ok_or(Error::SystemKeysLost)?;
        Ok(active.sign(message))
    }

    /// Whether any version of the authority's key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.public_keys
            .iter()
            .any(|key| verify_log_signature(key, message, signature))
    }
}

type Unwrapping<'a> = Pin<Box<dyn Future<Output = Result<Vec<LogKey>, Error>> + Send + 'a>>;

/// Boxed, because every request that is logged may certify a key: its future would contain the calls of all providers.
fn unwrap_all(loader: &Loader) -> Unwrapping<'_> {
    Box::pin(async {
        let keys = loader.load_system_keys::<Purpose>().await?;
        keys.iter()
            .map(|key| LogKey::of_authority(key).map_err(|_| Error::Seal))
            .collect()
    })
}
