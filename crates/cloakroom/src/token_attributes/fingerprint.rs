//! What equal data of one type and tenant has in common.

use cloakroom_crypto::Fingerprint;
use cloakroom_expressions::Context;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::expression::{evaluate_to_text, parse_template};
use crate::keys::TenantKeys;
use crate::token_types::TokenKind;

/// The fingerprint that the type's own expression gives; data that gives nothing has none.
pub(crate) fn fingerprint_by_type(
    keys: &TenantKeys,
    kind: TokenKind,
    data: &Value,
) -> Option<Fingerprint> {
    by_type(kind, data).map(|text| fingerprint_of(keys, kind, &text))
}

/// The fingerprint of what an expression gave.
pub(crate) fn fingerprint_of(keys: &TenantKeys, kind: TokenKind, text: &str) -> Fingerprint {
    keys.fingerprint(kind.name(), &normal(text))
}

fn by_type(kind: TokenKind, data: &Value) -> Option<String> {
    // Said directly what `{{ data | stringify }}` says: data may be larger than any expression may
    // return.
    if kind == TokenKind::Token {
        let text = match data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return (!text.is_empty()).then_some(text);
    }
    let text = kind.default_fingerprint_expression();
    let template = parse_template(Context::Fingerprint, text).ok()?;
    evaluate_to_text(&template, &[("data", data)]).ok()
}

/// One spelling for characters that can be written in several ways.
pub(crate) fn normal(text: &str) -> String {
    text.nfc().collect()
}

/// A fingerprint as it is shown.
pub(crate) fn base58(fingerprint: &Fingerprint) -> String {
    bs58::encode(fingerprint.as_bytes()).into_string()
}
