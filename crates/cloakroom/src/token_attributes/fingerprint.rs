//! What equal data of one type and tenant has in common.

use cloakroom_crypto::{Fingerprint, Sensitive};
use cloakroom_expressions::Context;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::expression::{evaluate_to_text, parse_template};
use crate::card_numbers::card_numbers_in;
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

/// The card numbers that a token or its fingerprint tells something about.
///
/// Cards have one. Data of the type `token` may hold anything, and is compared with all of it; and
/// whoever gives an expression may make a fingerprint of more than the card: `digested` is what came
/// of it. Expressions may also hide the digits that they are given, so then all of the data is searched.
/// The numbers of other types are not those of cards, and no fingerprint of theirs equals one of a card.
pub(crate) fn card_numbers_of(
    kind: TokenKind,
    data: &Value,
    digested: Option<&str>,
) -> Vec<Sensitive<String>> {
    let own = match kind {
        TokenKind::Card | TokenKind::NetworkToken => data.get("number").and_then(Value::as_str),
        TokenKind::CardNumber => data.as_str(),
        TokenKind::Token => None,
        _ => return Vec::new(),
    };
    let own = own.map(|number| Sensitive::new(number.to_owned()));
    let mut numbers: Vec<Sensitive<String>> = own.into_iter().collect();
    numbers.extend(digested.map(card_numbers_in).unwrap_or_default());
    if kind == TokenKind::Token || digested.is_some() {
        numbers.extend(card_numbers_in(Sensitive::new(data.to_string()).expose()));
    }
    numbers
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
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    // Five digits at a time: a general encoder, digit by digit, takes ten times as long.
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
    // Zeros in front are shown one for one, and not as part of the number.
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
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_shown_in_base58() {
        let mut cases = vec![[0; 32], [255; 32]];
        for zeros in 0..32 {
            let mut bytes = [0; 32];
            bytes[zeros..].fill(7);
            cases.push(bytes);
        }
        cases.extend((0..1_000).map(|_| cloakroom_crypto::random_bytes()));
        for bytes in cases {
            let expected = bs58::encode(bytes).into_string();
            assert_eq!(base58(&Fingerprint::from(bytes)), expected);
        }
    }
}
