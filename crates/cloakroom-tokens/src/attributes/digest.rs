//! The keyed digests that tokens are looked up by: fingerprints and search terms.

use std::sync::Arc;

use cloakroom_core::keys::{OtherFingerprint, TenantKeys};
use cloakroom_crypto::Fingerprint;
use cloakroom_expressions::Template;
use cloakroom_platform::api::FieldError;
use serde_json::{Map, Value};

use super::{default_text, evaluate_to_text, fingerprint_of, normalize, other_fingerprints_of};
use crate::search_expressions::Domain;
use crate::types::{TokenKind, evaluate_fingerprint, evaluate_index};

// Domains of the terms of metadata. Stored terms depend on them, so they keep their values.
const METADATA: &str = "metadata";
const FOLDED_METADATA: &str = "folded metadata";

/// A search term, truncated to its length in the `term` table.
pub type Term = [u8; 16];

/// A token's data and the expressions to index it by. The data never contains a security code.
pub struct DigestInput<'a> {
    pub kind: TokenKind,
    pub data: &'a Value,
    pub metadata: Option<&'a Map<String, Value>>,
    pub fingerprint: FingerprintSource<'a>,
    pub search_indexes: &'a [SearchIndex],
}

/// A search expression and the domain of its terms.
pub struct SearchIndex {
    pub template: Arc<Template>,
    pub domain: Domain,
}

/// The expression that the fingerprint is computed from.
pub enum FingerprintSource<'a> {
    /// No fingerprint.
    Nothing,
    /// The default of the type. If it yields nothing, the token has no fingerprint.
    Type,
    /// The client's expression. If it yields nothing, the request is rejected.
    Given(&'a Template),
}

/// The digests of one token.
#[derive(Default)]
pub struct Digests {
    pub fingerprint: Option<Fingerprint>,
    /// The fingerprints under other versions of the key, while it is replaced.
    pub other_fingerprints: Vec<OtherFingerprint>,
    pub terms: Vec<Term>,
}

impl DigestInput<'_> {
    pub fn digest(&self, keys: &TenantKeys) -> Result<Digests, Vec<FieldError>> {
        let mut broken = Vec::new();
        let text = self.fingerprint_text().unwrap_or_else(|rule| {
            broken.push(FieldError::new("fingerprint_expression", rule));
            None
        });
        let text = text.as_deref();
        let fingerprint = text.map(|text| fingerprint_of(keys, self.kind, text));
        let others = text.map(|text| other_fingerprints_of(keys, self.kind, text));
        let mut terms: Vec<Term> = fingerprint.iter().map(fingerprint_term).collect();
        for (index, search_index) in self.search_indexes.iter().enumerate() {
            match self.index_text(&search_index.template) {
                Ok(text) => terms.push(data_term(keys, &search_index.domain, &text)),
                Err(rule) => broken.push(FieldError::new(format!("search_indexes[{index}]"), rule)),
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
        Ok(Digests {
            fingerprint,
            other_fingerprints: others.unwrap_or_default(),
            terms,
        })
    }

    fn fingerprint_text(&self) -> Result<Option<String>, String> {
        Ok(match self.fingerprint {
            FingerprintSource::Nothing => None,
            FingerprintSource::Type => default_text(self.kind, self.data),
            FingerprintSource::Given(template) => {
                let metadata = self.metadata.cloned().map_or(Value::Null, Value::Object);
                Some(fingerprint_text(self.kind, template, self.data, &metadata)?)
            }
        })
    }

    /// The text of a search index. For card types it contains the full number or none of the digits that truncation
    /// hides: an index over some of them would let a client recover the number part by part.
    fn index_text(&self, template: &Template) -> Result<String, String> {
        let evaluate = |data: &Value| evaluate_to_text(template, &[("data", data)]);
        evaluate_index(self.kind, self.data, evaluate)
    }
}

/// The text that a client's expression computes the fingerprint from. It must include the full card number: the
/// fingerprint of a part would disclose that part to anyone who can compare fingerprints.
pub fn fingerprint_text(
    kind: TokenKind,
    template: &Template,
    data: &Value,
    metadata: &Value,
) -> Result<String, String> {
    let evaluate =
        |data: &Value| evaluate_to_text(template, &[("data", data), ("metadata", metadata)]);
    evaluate_fingerprint(kind, data, evaluate)
}

/// The search term of a fingerprint: its prefix, because it is already a keyed digest.
pub fn fingerprint_term(fingerprint: &Fingerprint) -> Term {
    let mut term = [0; 16];
    term.copy_from_slice(&fingerprint.as_bytes()[..16]);
    term
}

/// The term of a search index value in the domain of its expression.
fn data_term(keys: &TenantKeys, domain: &Domain, value: &str) -> Term {
    keys.term(domain.as_str(), normalize(value).as_bytes())
}

/// The terms of a searched value: one per domain, because a search specifies no expression, and per version of the key.
pub fn data_terms(keys: &TenantKeys, domains: &[Domain], value: &str) -> Vec<Term> {
    let value = normalize(value);
    let terms = |domain: &Domain| keys.terms(domain.as_str(), value.as_bytes());
    domains.iter().flat_map(terms).collect()
}

/// The case-sensitive term of a metadata entry.
fn metadata_term(keys: &TenantKeys, key: &str, value: &str) -> Term {
    keys.term(METADATA, pair(key, value).as_bytes())
}

/// The case-sensitive terms of a searched metadata entry, one per version of the key. A token with the entry has exactly
/// one of them.
pub fn searched_metadata_terms(keys: &TenantKeys, key: &str, value: &str) -> Vec<Term> {
    keys.terms(METADATA, pair(key, value).as_bytes())
}

/// The terms of a case-insensitive metadata entry. A token with the entry has exactly one of them.
pub fn folded_metadata_terms(keys: &TenantKeys, key: &str, value: &str) -> Vec<Term> {
    let pair = pair(&fold_case(key), &fold_case(value));
    let mut terms = keys.terms(METADATA, pair.as_bytes());
    terms.extend(keys.terms(FOLDED_METADATA, pair.as_bytes()));
    terms
}

/// One term per entry as given, and one per case-folded entry unless the token has that entry already.
fn metadata_terms(keys: &TenantKeys, metadata: &Map<String, Value>) -> Vec<Term> {
    let mut terms = Vec::with_capacity(metadata.len());
    for (key, value) in metadata {
        let value = value.as_str().unwrap_or_default();
        terms.push(metadata_term(keys, key, value));
        let (key, value) = (fold_case(key), fold_case(value));
        let is_there = metadata.get(&key).and_then(Value::as_str) == Some(&value);
        if !is_there {
            terms.push(folded_term(keys, &key, &value));
        }
    }
    terms
}

fn folded_term(keys: &TenantKeys, key: &str, value: &str) -> Term {
    keys.term(FOLDED_METADATA, pair(key, value).as_bytes())
}

/// Encodes an entry unambiguously: no two entries have the same encoding.
fn pair(key: &str, value: &str) -> String {
    format!("{}:{key}{value}", key.len())
}

/// Case-folds text, as the v1 list compares it.
pub fn fold_case(text: &str) -> String {
    normalize(text).to_lowercase()
}
