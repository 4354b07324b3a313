//! Fingerprints, which are identical for identical data of the same type and tenant.

use cloakroom_core::access::ApplicationKind;
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::{OtherFingerprint, TenantKeys};
use cloakroom_core::velocity::CandidateNumber;
use cloakroom_crypto::{Fingerprint, Sensitive};
use cloakroom_expressions::Context;
use cloakroom_platform::card_numbers::card_numbers_in;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::expression::{evaluate_to_text, parse_template};
use crate::types::TokenKind;

/// The fingerprint of an expression's result.
pub fn fingerprint_of(keys: &TenantKeys, kind: TokenKind, text: &str) -> Fingerprint {
    keys.fingerprint(kind.name(), &normalize(text))
}

/// The fingerprints of an expression's result under other versions of the key, while it is replaced.
pub fn other_fingerprints_of(
    keys: &TenantKeys,
    kind: TokenKind,
    text: &str,
) -> Vec<OtherFingerprint> {
    match keys.has_other_fingerprints() {
        true => keys.other_fingerprints(kind.name(), &normalize(text)),
        false => Vec::new(),
    }
}

/// The numbers whose existence a token or its fingerprint confirms. They count toward the velocity limit.
///
/// A card type has one. Data of the type `token` may contain any number. `digested` is the result of the client's
/// fingerprint expression, which can also hide digits, so in that case all of the data is searched.
pub fn numbers_of(kind: TokenKind, data: &Value, digested: Option<&str>) -> Vec<CandidateNumber> {
    let own = match kind {
        TokenKind::Card | TokenKind::NetworkToken => data.get("number"),
        TokenKind::Bank => data.get("account_number"),
        TokenKind::Token => None,
        _ => Some(data),
    };
    let own = own.and_then(Value::as_str);
    if kind.is_low_entropy() {
        let texts = own.into_iter().chain(digested);
        return texts.flat_map(|text| identifiers_in(kind, text)).collect();
    }
    let mut numbers: Vec<CandidateNumber> = own
        .map(|number| CandidateNumber::Card(Sensitive::new(number.to_owned())))
        .into_iter()
        .collect();
    let mut searched = digested.map(card_numbers_in).unwrap_or_default();
    if kind == TokenKind::Token || digested.is_some() {
        searched.extend(card_numbers_in(Sensitive::new(data.to_string()).expose()));
    }
    numbers.extend(searched.into_iter().map(CandidateNumber::Card));
    numbers
}

/// The numbers whose existence a search by value confirms: card numbers, and the value itself if it could be of a
/// low-entropy type. Four digits are a search by the last four and do not count.
pub fn numbers_in_search(value: &str) -> Vec<CandidateNumber> {
    const IDENTIFIER_DIGITS: std::ops::RangeInclusive<usize> = 5..=17;
    const CARD_DIGITS: std::ops::RangeInclusive<usize> = 12..=19;
    let mut numbers: Vec<CandidateNumber> = card_numbers_in(value)
        .into_iter()
        .map(CandidateNumber::Card)
        .collect();
    let digits = Sensitive::new(value.replace('-', ""));
    let is_number = digits.expose().bytes().all(|byte| byte.is_ascii_digit());
    // Network tokens need not pass the Luhn check.
    if is_number && numbers.is_empty() && CARD_DIGITS.contains(&digits.expose().len()) {
        numbers.push(CandidateNumber::Card(Sensitive::new(
            digits.expose().clone(),
        )));
    }
    if is_number && IDENTIFIER_DIGITS.contains(&digits.expose().len()) {
        let kinds = TokenKind::ALL.into_iter();
        let kinds = kinds.filter(|kind| kind.may_have_digits(digits.expose().len()));
        numbers.extend(kinds.map(|kind| identifier(kind, digits.expose())));
    }
    numbers
}

/// Runs of digits, ignoring dashes, up to a limit.
fn identifiers_in(kind: TokenKind, text: &str) -> Vec<CandidateNumber> {
    const IDENTIFIERS_MAX: usize = 100;
    let digits = Sensitive::new(text.replace('-', ""));
    let runs = digits
        .expose()
        .split(|character: char| !character.is_ascii_digit());
    let runs = runs.filter(|run| !run.is_empty());
    runs.take(IDENTIFIERS_MAX)
        .map(|run| identifier(kind, run))
        .collect()
}

fn identifier(kind: TokenKind, digits: &str) -> CandidateNumber {
    CandidateNumber::Identifier {
        kind: kind.name(),
        digits: Sensitive::new(digits.to_owned()),
    }
}

/// Whether a caller may compare values, by fingerprints or by duplicates.
///
/// Everybody who visits a page has its public key and can create tokens of guesses. Only enumeration of card numbers is
/// limited, so public applications may compare nothing else.
pub fn may_compare(caller: &Caller, kind: TokenKind, has_own_fingerprint: bool) -> bool {
    let is_card_number = kind.is_card() && !has_own_fingerprint;
    is_card_number || caller.application_kind != ApplicationKind::Public
}

/// The text that the default expression of the type computes the fingerprint from; `None` if it yields nothing.
pub fn default_text(kind: TokenKind, data: &Value) -> Option<String> {
    // Equivalent to `{{ data | stringify }}`, without the size limit of expression results.
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

/// Normalizes text to Unicode NFC.
pub fn normalize(text: &str) -> String {
    text.nfc().collect()
}

/// Encodes a fingerprint in base58.
pub fn base58(fingerprint: &Fingerprint) -> String {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    // Five digits at a time: a general encoder, digit by digit, is ten times slower.
    const FIVE_DIGITS: u64 = 58 * 58 * 58 * 58 * 58;
    let (limbs, _) = fingerprint.as_bytes().as_chunks::<4>();
    let mut number: Vec<u64> = limbs
        .iter()
        .map(|limb| u64::from(u32::from_be_bytes(*limb)))
        .collect();
    let mut digits = Vec::with_capacity(45);
    for _ in 0..9 {
        let mut rest = 0;
        for limb in &mut number {
            let dividend = (rest << 32) | *limb;
            (*limb, rest) = (dividend / FIVE_DIGITS, dividend % FIVE_DIGITS);
        }
        for _ in 0..5 {
            digits.push(ALPHABET[(rest % 58) as usize]);
            rest /= 58;
        }
    }
    // Base58 encodes each leading zero byte as one `1`.
    let zeros = fingerprint.as_bytes().iter().take_while(|byte| **byte == 0);
    while digits.pop_if(|digit| *digit == b'1').is_some() {}
    digits.extend(zeros.map(|_| b'1'));
    digits
        .iter()
        .rev()
        .map(|digit| char::from(*digit))
        .collect()
}

#[cfg(test)]
mod tests;
