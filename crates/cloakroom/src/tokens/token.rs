//! A token: what is kept of it, and what it is bound to.

use std::borrow::Cow;

use cloakroom_crypto::{Fingerprint, PolicyDigest, Sensitive};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::content::{shown_mask, shown_search_indexes};
use super::view::Shown;
use crate::access::{Container, Subject, Transform};
use crate::audit::{Entry, Operation, Outcome};
use crate::caller::Caller;
use crate::keys::Record;
use crate::token_attributes::{Expiry, Privacy, TokenId};
use crate::token_rows::entity_kind;
use crate::token_types::TokenKind;

/// A token that is asked for; nothing in it is checked yet.
#[derive(Default)]
pub struct NewToken<'a> {
    pub id: Option<String>,
    pub kind: Option<String>,
    pub data: Option<&'a RawValue>,
    /// The data as the client encrypted it.
    pub encrypted: Option<String>,
    /// The intent that gives type and data.
    pub token_intent_id: Option<String>,
    pub mask: Option<Value>,
    pub containers: Option<Vec<String>>,
    pub privacy: Option<Privacy>,
    pub metadata: Option<Map<String, Value>>,
    pub search_indexes: Option<Vec<String>>,
    pub fingerprint_expression: Option<String>,
    pub deduplicate_token: Option<bool>,
    pub expires_at: Option<String>,
}

/// A token without its data.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: TokenId,
    pub kind: TokenKind,
    pub container: Container,
    pub row_version: u32,
    pub expiry: Option<Expiry>,
    /// The mask that the client gave, as JSON; without one, the type's default applies.
    pub mask: Option<String>,
    /// Metadata as a JSON object of strings.
    pub metadata: Option<String>,
    pub fingerprint: Option<Fingerprint>,
    pub fingerprint_expression: Option<String>,
    pub search_indexes: Option<String>,
    /// Whether a security code was kept that has not reached its end.
    pub has_security_code: bool,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

impl Token {
    /// What rules decide about.
    pub(super) fn subject<'a>(&'a self, id: &'a str) -> Subject<'a> {
        let id = Some(id);
        Subject {
            container: &self.container,
            id,
        }
    }
}

/// What a patch does to an attribute: absent, null, or a value.
#[derive(Clone, Default)]
pub enum Change<T> {
    #[default]
    Stays,
    Goes,
    Becomes(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<T>::deserialize(deserializer)?;
        Ok(given.map_or(Self::Goes, Self::Becomes))
    }
}

/// What is recorded of something that a caller does to a token.
pub(super) fn entry(
    caller: &Caller,
    operation: Operation,
    token: (&TokenId, TokenKind),
    shown: Option<&Shown>,
) -> Entry {
    let (id, kind) = token;
    let entry = Entry::of(caller, operation, entity_kind(kind), id.text());
    entry.with_outcome(match shown.map(|shown| shown.transform) {
        None => Outcome::Done,
        Some(Transform::Redact) => Outcome::Redacted,
        Some(Transform::Mask) => Outcome::Masked,
        Some(Transform::Reveal) => Outcome::Revealed,
    })
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
            fingerprint: self.fingerprint.as_ref(),
        };
        bound.record(self.row_version)
    }

    pub fn shown_mask(&self) -> Option<Cow<'static, Value>> {
        shown_mask(self.kind, self.mask.as_deref())
    }

    pub fn shown_search_indexes(&self) -> Vec<String> {
        shown_search_indexes(self.kind, self.search_indexes.as_deref())
    }

    /// The expression behind the fingerprint, its type's own included.
    pub fn shown_fingerprint_expression(&self) -> Option<&str> {
        self.fingerprint?;
        let given = self.fingerprint_expression.as_deref();
        Some(given.unwrap_or_else(|| self.kind.default_fingerprint_expression()))
    }
}

/// The clear attributes that decide who sees what of the data, and for how long.
pub(super) struct Bound<'a> {
    pub id: &'a TokenId,
    pub kind: TokenKind,
    pub container: &'a Container,
    pub expiry: Option<Expiry>,
    pub mask: Option<&'a str>,
    /// Whoever could change it would have deduplication return one token for another.
    pub fingerprint: Option<&'a Fingerprint>,
}

impl<'a> Bound<'a> {
    pub(super) fn record(&self, row_version: u32) -> Record<'a> {
        let expires_at = self.expiry.map(|expiry| expiry.at.as_microsecond());
        let containers = [self.container.as_str()];
        let mut policy = PolicyDigest::new(self.kind.name(), &containers, expires_at);
        if let Some(mask) = self.mask {
            policy = policy.with("mask", mask);
        }
        if let Some(fingerprint) = self.fingerprint {
            policy = policy.with("fingerprint", &hex::encode(fingerprint.as_bytes()));
        }
        if let Some(alias) = self.id.alias() {
            policy = policy.with("alias", alias);
        }
        Record {
            kind: "token",
            id: self.id.key().as_bytes(),
            column: "data",
            row_version,
            policy,
        }
    }
}
