//! The token intent and the attributes that its encrypted data is bound to.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::keys::Record;
use cloakroom_crypto::{Fingerprint, RowPolicy, Sensitive};
use cloakroom_platform::api::format_utc;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::attributes::{Details, base58};
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
    pub(super) fn created_event(&self) -> Event {
        let intent = json!({
            "id": self.id,
            "type": self.kind.name(),
            "fingerprint": self.fingerprint.as_ref().map(base58),
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
            "expires_at": format_utc(self.expires_at),
        });
        Event::new(
            EventKind::TokenIntentCreated,
            self.id,
            json!({ "token_intent": intent }),
        )
    }

    /// The associated data of the ciphertext. Changing any of it with SQL makes the data undecryptable. The security
    /// code is bound to the intent by itself, because it can be deleted earlier.
    pub(super) fn record(&self) -> Record<'_> {
        let fingerprint = self.fingerprint.as_ref();
        let policy = RowPolicy::new("token_intent", 0)
            .text(Some(self.kind.name()))
            .bytes(fingerprint.map(|print| &print.as_bytes()[..]))
            .bytes(Some(self.created_by.as_bytes()))
            .number(Some(self.created_at.as_microsecond()))
            .number(Some(self.expires_at.as_microsecond()))
            .digest();
        Record {
            kind: "token_intent",
            id: self.id.as_bytes(),
            column: "data",
            row_version: 1,
            policy,
        }
    }
}
