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
        record(
            &self.id,
            self.kind,
            &self.container,
            self.expiry,
            self.row_version,
        )
    }
}

pub(super) fn record<'a>(
    id: &'a Uuid,
    kind: TokenKind,
    container: &Container,
    expiry: Option<Expiry>,
    row_version: u32,
) -> Record<'a> {
    let expires_at = expiry.map(|expiry| expiry.at.as_microsecond());
    Record {
        kind: "token",
        id: id.as_bytes(),
        column: "data",
        row_version,
        policy: PolicyDigest::new(kind.name(), &[container.as_str()], expires_at),
    }
}
