//! A token intent: what is kept of it, and what its data is bound to.

use cloakroom_crypto::{Fingerprint, PolicyDigest, Sensitive};
use jiff::Timestamp;
use uuid::Uuid;

use crate::keys::Record;
use crate::token_attributes::Details;
use crate::token_types::TokenKind;

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

/// An intent with what everyone who knows its id may see of its data.
pub struct IntentView {
    pub intent: TokenIntent,
    pub details: Details,
}

/// An intent whose data was opened. The data never holds a security code.
pub(crate) struct OpenedIntent {
    pub intent: TokenIntent,
    pub data: Sensitive<Vec<u8>>,
}

impl TokenIntent {
    /// What the sealed data is bound to: changing any of it by SQL makes the data unreadable.
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
