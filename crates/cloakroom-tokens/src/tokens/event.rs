//! The events of tokens: their attributes, never their data.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_platform::api::{format_at_offset, format_utc};
use serde_json::{Value, json};

use super::Token;
use crate::attributes::{TokenId, base58};
use crate::types::TokenKind;

impl Token {
    /// The event of a created or updated token.
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let id = self.id.text();
        let attributes = &self.attributes;
        let expiry = attributes.expiry;
        let mut token = json!({
            "id": id,
            "type": self.kind.name(),
            "metadata": attributes.metadata_map(),
            "containers": [self.container.as_str()],
            "fingerprint": self.fingerprint.as_ref().map(base58),
            "fingerprint_expression": self
                .fingerprint
                .map(|_| attributes.shown_fingerprint_expression(self.kind)),
            "search_indexes": attributes.shown_search_indexes(self.kind),
            "created_by": self.created_by,
            "created_at": Value::Null,
            "expires_at": expiry.map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes)),
        });
        if let Some(by) = self.modified_by {
            token["created_at"] = format_utc(self.created_at).into();
            token["modified_by"] = by.to_string().into();
            token["modified_at"] = Value::Null;
        }
        Event::new(kind, &id, json!({ "token": token }))
    }
}

/// The event of a token whose data or attributes were returned.
pub(super) fn read_event(id: &TokenId, kind: TokenKind) -> Event {
    let token = json!({"id": id.text(), "type": kind.name()});
    Event::unordered(EventKind::TokenRead, json!({ "token": token }))
}
