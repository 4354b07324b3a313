//! A token: what is kept of it, and what it is bound to.

use cloakroom_crypto::{PolicyDigest, Sensitive};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::TokenKind;
use super::expiry::Expiry;
use crate::access::Container;
use crate::keys::Record;

/// A token that is asked for; nothing in it is checked yet.
pub struct NewToken<'a> {
    pub id: Option<String>,
    pub kind: Option<String>,
    pub data: Option<&'a RawValue>,
    pub mask: Option<Value>,
    pub containers: Option<Vec<String>>,
    pub privacy: Option<Privacy>,
    pub metadata: Option<Map<String, Value>>,
    pub expires_at: Option<String>,
}

/// The older way to say where a token goes; it only counts when no container is named.
pub struct Privacy {
    pub classification: Option<String>,
    pub impact_level: Option<String>,
}

/// A token without its data.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: Uuid,
    pub kind: TokenKind,
    pub container: Container,
    pub row_version: u32,
    pub expiry: Option<Expiry>,
    /// The mask that the client gave, as JSON; without one, the type's default applies.
    pub mask: Option<String>,
    /// Metadata as a JSON object of strings.
    pub metadata: Option<String>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// The plaintext of a token's data, as JSON.
pub(super) type TokenData = Sensitive<Vec<u8>>;

impl Token {
    /// What the sealed data is bound to: changing any of it by SQL makes the data unreadable.
    pub(super) fn record(&self) -> Record<'_> {
        let bound = Bound {
            id: &self.id,
            kind: self.kind,
            container: &self.container,
            expiry: self.expiry,
            mask: self.mask.as_deref(),
        };
        bound.record(self.row_version)
    }
}

/// The clear attributes that decide who sees what of the data, and for how long.
pub(super) struct Bound<'a> {
    pub id: &'a Uuid,
    pub kind: TokenKind,
    pub container: &'a Container,
    pub expiry: Option<Expiry>,
    pub mask: Option<&'a str>,
}

impl<'a> Bound<'a> {
    pub(super) fn record(&self, row_version: u32) -> Record<'a> {
        let expires_at = self.expiry.map(|expiry| expiry.at.as_microsecond());
        let containers = [self.container.as_str()];
        let mut policy = PolicyDigest::new(self.kind.name(), &containers, expires_at);
        if let Some(mask) = self.mask {
            policy = policy.with("mask", mask);
        }
        Record {
            kind: "token",
            id: self.id.as_bytes(),
            column: "data",
            row_version,
            policy,
        }
    }
}

/// Reads an id in the one spelling that answers use.
pub(super) fn parse_id(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}
