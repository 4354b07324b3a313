//! The token intent and the attributes that its encrypted data is bound to.

use cloakroom_core::keys::Record;
use cloakroom_crypto::{Fingerprint, PolicyDigest, Sensitive};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::attributes::Details;
use crate::types::TokenKind;

/// An intent without its data.
#[derive(Clone, Debug)]
pub struct TokenIntent {
    pub id: Uuid,
    pub kind: TokenKind,
    pub fingerprint: Option<Fingerprint>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// An intent with the details that `token-intent:read` shows.
pub struct IntentView {
    pub intent: TokenIntent,
    pub details: Details,
}

/// An intent with its decrypted data, which never contains a security code.
pub struct OpenedIntent {
    pub intent: TokenIntent,
    pub data: Sensitive<Vec<u8>>,
}

/// An intent with its plaintext data, for callers that may reveal it.
pub struct RevealedIntent {
    pub view: IntentView,
    pub data: Value,
}

impl TokenIntent {
    /// The associated data of the ciphertext. Changing any of it with SQL makes the data undecryptable.
    pub(super) fn record(&self) -> Record<'_> {
        let expires_at = Some(self.expires_at.as_microsecond());
        let mut policy = PolicyDigest::new::<&str>(self.kind.name(), &[], expires_at);
        if let Some(fingerprint) = &self.fingerprint {
            policy = policy.with("fingerprint", &hex::encode(fingerprint.as_bytes()));
        }
        Record {
            kind: "token_intent",
            id: self.id.as_bytes(),
            column: "data",
            row_version: 1,
            policy,
        }
    }
}
