//! The secret of a webhook, which signs its deliveries as Standard Webhooks specifies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::keys::{self, Keyring, Record, TenantKeys};
use cloakroom_crypto::{ClientHash, PolicyDigest, Sensitive, client_hmac, random_bytes};
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

const PREFIX: &str = "whsec_";

/// 32 random bytes. Shown once, when the webhook is created.
pub(crate) struct Secret(Sensitive<Vec<u8>>);

impl Secret {
    pub(crate) fn generate() -> Self {
        Self(Sensitive::new(random_bytes::<32>().to_vec()))
    }

    /// `whsec_` and the bytes in Base64.
    pub(crate) fn text(&self) -> Sensitive<String> {
        Sensitive::new(format!("{PREFIX}{}", STANDARD.encode(self.0.expose())))
    }

    pub(crate) fn seal(&self, keys: &TenantKeys, webhook: Uuid) -> Result<Vec<u8>, keys::Error> {
        keys.seal(&record(&webhook), self.0.expose())
    }

    /// Seals a secret under the active key; `None` if it is already.
    pub(crate) fn reseal(
        keys: &TenantKeys,
        webhook: Uuid,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, keys::Error> {
        keys.reseal(&record(&webhook), sealed)
    }

    pub(crate) async fn open(
        keys: &Keyring,
        tenant: TenantId,
        webhook: Uuid,
        sealed: &[u8],
    ) -> Result<Self, keys::Error> {
        let bytes = keys.open(tenant, &record(&webhook), sealed).await?;
        Ok(Self(bytes))
    }

    /// HMAC-SHA-256 of a message, in Base64.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(client_hmac(ClientHash::Sha256, self.0.expose(), message))
    }
}

fn record(webhook: &Uuid) -> Record<'_> {
    Record {
        kind: "webhook",
        id: webhook.as_bytes(),
        column: "secret",
        row_version: 1,
        policy: PolicyDigest::new::<&str>("webhook", &[], None),
    }
}
