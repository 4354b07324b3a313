//! The token and the attributes that its encrypted data is bound to.

use cloakroom_core::access::{Container, Resource, Transform};
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::keys::Record;
use cloakroom_crypto::{Fingerprint, PolicyDigest, RowPolicy, Sensitive};
use cloakroom_platform::api::{format_at_offset, format_utc};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::attributes::TokenAttributes;
use super::view::VisibleData;
use crate::attributes::{Term, TokenId, base58};
use crate::types::TokenKind;

/// A token without its data.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: TokenId,
    pub kind: TokenKind,
    pub container: Container,
    pub attributes: TokenAttributes,
    pub row_version: u32,
    pub fingerprint: Option<Fingerprint>,
    /// Whether an unexpired security code is stored.
    pub has_security_code: bool,
    /// When the security code expires or has expired, if one was stored.
    pub security_code_until: Option<Timestamp>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

impl Token {
    /// The subject of access rules.
    pub(super) fn subject<'a>(&'a self, id: &'a str) -> Resource<'a> {
        let id = Some(id);
        Resource {
            container: &self.container,
            id,
        }
    }
}

/// The entity kind of a token type in the audit log.
pub(super) fn entity_kind(kind: TokenKind) -> EntityKind {
    match kind {
        TokenKind::Card => EntityKind::Card,
        TokenKind::Bank => EntityKind::Bank,
        _ => EntityKind::Token,
    }
}

/// Builds the audit log entry for an operation on a token.
pub(super) fn entry(
    caller: &Caller,
    operation: Operation,
    id: &TokenId,
    kind: TokenKind,
    shown: Option<&VisibleData>,
) -> Entry {
    let entry = Entry::new(caller, operation, entity_kind(kind), id.text());
    entry.with_outcome(match shown.map(|shown| shown.transform) {
        None => Outcome::Done,
        Some(Transform::Redact) => Outcome::Redacted,
        Some(Transform::Mask) => Outcome::Masked,
        Some(Transform::Reveal) => Outcome::Revealed,
    })
}

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

/// The plaintext of a token's data, as JSON.
pub(super) type TokenData = Sensitive<Vec<u8>>;

impl Token {
    /// When the row was last written. It increases with every write of a token, also when its id is reused.
    pub(super) fn written_at(&self) -> Timestamp {
        self.modified_at.unwrap_or(self.created_at)
    }

    /// The associated data of the ciphertext: every column of the row. Changing any of them with SQL makes the data
    /// undecryptable.
    pub(super) fn record(&self, terms: &[Term]) -> Record<'_> {
        Record {
            kind: "token",
            id: self.id.key().as_bytes(),
            column: "data",
            row_version: self.row_version,
            policy: self.policy(terms),
        }
    }

    fn policy(&self, terms: &[Term]) -> PolicyDigest {
        let attributes = &self.attributes;
        let texts = [
            &attributes.mask,
            &attributes.metadata,
            &attributes.search_indexes,
            &attributes.fingerprint_expression,
        ];
        let texts = texts
            .iter()
            .map(|text| text.as_ref().map_or(0, String::len));
        let micros = |at: Timestamp| at.as_microsecond();
        let expiry = attributes.expiry;
        let fingerprint = self.fingerprint.as_ref();
        let modified_by = self.modified_by.as_ref();
        RowPolicy::new("token", texts.sum::<usize>() + 24 * terms.len())
            .text(Some(self.kind.name()))
            .text(Some(self.container.as_str()))
            .text(self.id.alias())
            .number(expiry.map(|expiry| micros(expiry.at)))
            .number(expiry.map(|expiry| expiry.offset_minutes.into()))
            .text(attributes.mask.as_deref())
            .text(attributes.metadata.as_deref())
            .bytes(fingerprint.map(|print| &print.as_bytes()[..]))
            .text(attributes.fingerprint_expression.as_deref())
            .text(attributes.search_indexes.as_deref())
            .array(terms.iter().map(|term| &term[..]))
            .bytes(Some(self.created_by.as_bytes()))
            .number(Some(micros(self.created_at)))
            .bytes(modified_by.map(|by| &by.as_bytes()[..]))
            .number(self.modified_at.map(micros))
            .number(self.security_code_until.map(micros))
            .digest()
    }
}
