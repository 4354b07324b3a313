//! Opaque, authenticated pagination cursors.
//!
//! A cursor is an encrypted [`Position`], bound to tenant, endpoint and filter. [`write()`] creates one; [`decode`],
//! the keyring and [`position`] read one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_core::keys::{self, Record};
use cloakroom_crypto::{PolicyDigest, Sensitive};
use jiff::Timestamp;
use uuid::Uuid;

use super::Filter;

/// Changes with the layout, so that cursors of another release are rejected instead of misread.
const FORMAT: u32 = 1;

/// The last token of a page; the next page starts after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// A number, because a path can be longer than a cursor may be. Numbers are never reused.
    pub container: i32,
    /// With microsecond precision, as in the database.
    pub created_at: Timestamp,
    pub token_id: Uuid,
}

/// The endpoint that issued a cursor, and the only one that accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    List,
    Search,
}

/// The associated data of the cursors of a list or search, besides the tenant.
pub fn record(endpoint: Endpoint, filter: &Filter) -> Record<'static> {
    let policy = PolicyDigest::new::<&str>("cursor", &[], None);
    Record {
        kind: "cursor",
        id: &[],
        column: match endpoint {
            Endpoint::List => "list",
            Endpoint::Search => "search",
        },
        row_version: FORMAT,
        policy: policy.with("filter", filter.canonical().expose()),
    }
}

/// Encrypts a position and encodes it as URL-safe text of about a hundred characters.
pub fn write(
    position: &Position,
    record: &Record<'_>,
    seal: impl FnOnce(&Record<'_>, &[u8]) -> Result<Vec<u8>, keys::Error>,
) -> Result<String, keys::Error> {
    let sealed = seal(record, &position.to_bytes())?;
    Ok(URL_SAFE_NO_PAD.encode(sealed))
}

/// Decodes the sealed bytes of a cursor.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Parses the position that the keyring opened; `None` if the cursor is invalid for this record.
///
/// Other errors are server errors and are returned as such.
pub fn position(
    opened: Result<Sensitive<Vec<u8>>, keys::Error>,
) -> Result<Option<Position>, keys::Error> {
    match opened {
        Ok(bytes) => Ok(Position::from_bytes(bytes.expose())),
        Err(keys::Error::Integrity) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Position {
    fn to_bytes(self) -> [u8; 28] {
        let mut bytes = [0; 28];
        bytes[..4].copy_from_slice(&self.container.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.created_at.as_microsecond().to_be_bytes());
        bytes[12..].copy_from_slice(self.token_id.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (container, rest) = bytes.split_first_chunk()?;
        let (micros, rest) = rest.split_first_chunk()?;
        Some(Self {
            container: i32::from_be_bytes(*container),
            created_at: Timestamp::from_microsecond(i64::from_be_bytes(*micros)).ok()?,
            token_id: Uuid::from_slice(rest).ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
