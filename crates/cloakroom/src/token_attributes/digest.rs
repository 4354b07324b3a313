//! What a token is found by without being read: its fingerprint and its search terms.

use std::sync::Arc;

use cloakroom_crypto::Fingerprint;
use cloakroom_expressions::Template;
use serde_json::{Map, Value};

use super::{evaluate_to_text, fingerprint_by_type, fingerprint_of, normal};
use crate::api::Broken;
use crate::keys::TenantKeys;
use crate::token_types::TokenKind;

/// A search term, as long as the table keeps it.
pub(crate) type Term = [u8; 16];

/// A token's data and what it is to be found by. The data never holds a security code.
pub(crate) struct Findable<'a> {
    pub kind: TokenKind,
    pub data: &'a Value,
    pub metadata: Option<&'a Map<String, Value>>,
    pub fingerprint: FingerprintBy<'a>,
    pub search_indexes: &'a [Arc<Template>],
}

/// Which expression gives the fingerprint.
pub(crate) enum FingerprintBy<'a> {
    /// There is none.
    Nothing,
    /// The type's own; data that gives nothing has no fingerprint.
    Type,
    /// The client's; data that gives nothing is refused.
    Given(&'a Template),
}

/// The digests of one token.
#[derive(Default)]
pub(crate) struct Digests {
    pub fingerprint: Option<Fingerprint>,
    pub terms: Vec<Term>,
}

impl Findable<'_> {
    pub(crate) fn digest(&self, keys: &TenantKeys) -> Result<Digests, Vec<Broken>> {
        let mut broken = Vec::new();
        let fingerprint = self.fingerprint(keys).unwrap_or_else(|rule| {
            broken.push(Broken::new("fingerprint_expression", rule));
            None
        });
        let mut terms: Vec<Term> = fingerprint.iter().map(fingerprint_term).collect();
        for (index, template) in self.search_indexes.iter().enumerate() {
            match evaluate_to_text(template, &[("data", self.data)]) {
                Ok(text) => terms.push(data_term(keys, &text)),
                Err(rule) => broken.push(Broken::new(format!("search_indexes[{index}]"), rule)),
            }
        }
        if let Some(metadata) = self.metadata {
            terms.extend(metadata_terms(keys, metadata));
        }
        terms.sort_unstable();
        terms.dedup();
        if !broken.is_empty() {
            return Err(broken);
        }
        Ok(Digests { fingerprint, terms })
    }

    fn fingerprint(&self, keys: &TenantKeys) -> Result<Option<Fingerprint>, String> {
        Ok(match self.fingerprint {
            FingerprintBy::Nothing => None,
            FingerprintBy::Type => fingerprint_by_type(keys, self.kind, self.data),
            FingerprintBy::Given(template) => {
                let metadata = self.metadata.cloned().map_or(Value::Null, Value::Object);
                let variables = [("data", self.data), ("metadata", &metadata)];
                let text = evaluate_to_text(template, &variables)?;
                Some(fingerprint_of(keys, self.kind, &text))
            }
        })
    }
}

/// A fingerprint is a keyed digest already; its beginning is as good a term as any.
pub(crate) fn fingerprint_term(fingerprint: &Fingerprint) -> Term {
    let mut term = [0; 16];
    term.copy_from_slice(&fingerprint.as_bytes()[..16]);
    term
}

/// The term of a value that some search index gave.
///
/// A search names a value and no expression, so all expressions share one domain.
pub(crate) fn data_term(keys: &TenantKeys, value: &str) -> Term {
    keys.term("data", normal(value).as_bytes())
}

/// The term of a metadata pair, case included.
pub(crate) fn metadata_term(keys: &TenantKeys, key: &str, value: &str) -> Term {
    keys.term("metadata", pair(key, value).as_bytes())
}

/// The terms of a pair whose case does not matter; a token that has it has exactly one of them.
pub(crate) fn folded_metadata_terms(keys: &TenantKeys, key: &str, value: &str) -> [Term; 2] {
    let (key, value) = (fold(key), fold(value));
    let exact = metadata_term(keys, &key, &value);
    [exact, folded_term(keys, &key, &value)]
}

/// One term for each pair as it is, and one in the form that case does not change where no pair of
/// the token has that form already.
fn metadata_terms(keys: &TenantKeys, metadata: &Map<String, Value>) -> Vec<Term> {
    let mut terms = Vec::with_capacity(metadata.len());
    for (key, value) in metadata {
        let value = value.as_str().unwrap_or_default();
        terms.push(metadata_term(keys, key, value));
        let (key, value) = (fold(key), fold(value));
        let is_there = metadata.get(&key).and_then(Value::as_str) == Some(&value);
        if !is_there {
            terms.push(folded_term(keys, &key, &value));
        }
    }
    terms
}

fn folded_term(keys: &TenantKeys, key: &str, value: &str) -> Term {
    keys.term("folded metadata", pair(key, value).as_bytes())
}

/// Both parts in one text, so that no two pairs share one.
fn pair(key: &str, value: &str) -> String {
    format!("{}:{key}{value}", key.len())
}

/// Text without regard to case, as the older list compares it.
pub(crate) fn fold(text: &str) -> String {
    normal(text).to_lowercase()
}
