//! What a token is found by without being read: its fingerprint and its search terms.

use cloakroom_crypto::Fingerprint;
use cloakroom_expressions::{Context, Template};
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use crate::api::Broken;
use crate::keys::TenantKeys;
use crate::token_attributes::{evaluate_to_text, parse_template};
use crate::token_types::TokenKind;

/// A search term, as long as the table keeps it.
pub(crate) type Term = [u8; 16];

/// A token's data and what it is to be found by. The data never holds a security code.
pub(super) struct Findable<'a> {
    pub kind: TokenKind,
    pub data: &'a Value,
    pub metadata: Option<&'a Map<String, Value>>,
    pub fingerprint: FingerprintBy<'a>,
    pub search_indexes: &'a [Template],
}

/// Which expression gives the fingerprint.
pub(super) enum FingerprintBy<'a> {
    /// There is none.
    Nothing,
    /// The type's own; data that gives nothing has no fingerprint.
    Type,
    /// The client's; data that gives nothing is refused.
    Given(&'a Template),
}

/// The digests of one token.
#[derive(Default)]
pub(super) struct Digests {
    pub fingerprint: Option<Fingerprint>,
    pub terms: Vec<Term>,
}

impl Findable<'_> {
    pub(super) fn digest(&self, keys: &TenantKeys) -> Result<Digests, Vec<Broken>> {
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
        for (key, value) in self.metadata.into_iter().flatten() {
            terms.push(metadata_term(keys, key, value.as_str().unwrap_or_default()));
        }
        terms.sort_unstable();
        terms.dedup();
        if !broken.is_empty() {
            return Err(broken);
        }
        Ok(Digests { fingerprint, terms })
    }

    fn fingerprint(&self, keys: &TenantKeys) -> Result<Option<Fingerprint>, String> {
        let text = match self.fingerprint {
            FingerprintBy::Nothing => return Ok(None),
            FingerprintBy::Given(template) => {
                let metadata = self.metadata.cloned().map_or(Value::Null, Value::Object);
                let variables = [("data", self.data), ("metadata", &metadata)];
                evaluate_to_text(template, &variables)?
            }
            FingerprintBy::Type => match self.by_type() {
                Some(text) => text,
                None => return Ok(None),
            },
        };
        Ok(Some(keys.fingerprint(self.kind.name(), &normal(&text))))
    }

    fn by_type(&self) -> Option<String> {
        // Said directly what `{{ data | stringify }}` says: data may be larger than any expression
        // may return.
        if self.kind == TokenKind::Token {
            let text = match self.data {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            return (!text.is_empty()).then_some(text);
        }
        let text = self.kind.default_fingerprint_expression();
        let template = parse_template(Context::Fingerprint, text).ok()?;
        evaluate_to_text(&template, &[("data", self.data)]).ok()
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

/// The term of a metadata pair, whatever its case: exact searches compare again with the row.
pub(crate) fn metadata_term(keys: &TenantKeys, key: &str, value: &str) -> Term {
    let (key, value) = (fold(key), fold(value));
    let pair = format!("{}:{key}{value}", key.len());
    keys.term("metadata", pair.as_bytes())
}

/// Text without regard to case, as the older list compares it.
pub(crate) fn fold(text: &str) -> String {
    normal(text).to_lowercase()
}

/// One spelling for characters that can be written in several ways.
fn normal(text: &str) -> String {
    text.nfc().collect()
}
