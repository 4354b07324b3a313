//! Detection of sensitive authentication data (SAD) by name and by content: security codes, track data and PINs.
//!
//! PCI DSS 3.3.1 prohibits storing SAD after authorization, in any field.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::in_compatibility_form;
use super::luhn::passes_luhn;

/// Error message for fields that contain sensitive authentication data.
pub const NO_AUTHENTICATION_DATA: &str =
    "must not contain a security code, track data or a PIN: PCI DSS forbids storing them";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationData {
    SecurityCode,
    Track,
    Pin,
}

use AuthenticationData::{Pin, SecurityCode, Track};

/// Names are compared in lowercase, without separators, with and without these prefixes and suffixes.
const NAME_PREFIXES: [&str; 7] = [
    "creditcard",
    "debitcard",
    "paymentcard",
    "bankcard",
    "payment",
    "card",
    "cc",
];
const NAME_SUFFIXES: [&str; 6] = ["code", "number", "value", "digits", "num", "no"];

#[rustfmt::skip]
const SECURITY_CODES: [&str; 24] = [
    "cvc", "cvc1", "cvc2", "cvc3", "cvv", "cvv1", "cvv2", "icvv", "dcvv", "dcvv2", "cvn", "cvn2", "cvd", "cvd2",
    "cav2", "ccv", "ccv2", "cvccvv", "cvvcvc", "securitycode", "cardsecurity", "cardverification",
    "cardverificationdata", "cardvalidation",
];
/// Ambiguous names; they count only if the value has 3 or 4 digits.
const MAYBE_SECURITY_CODES: [&str; 5] = ["cid", "csc", "cav", "cardcode", "verification"];
const TRACKS: [&str; 8] = [
    "trackdata",
    "trackequivalentdata",
    "magstripe",
    "magstripedata",
    "magneticstripe",
    "magneticstripedata",
    "magnetictrack",
    "swipedata",
];
const PINS: [&str; 4] = ["encryptedpin", "pindata", "pinblock", "cardpin"];
const MAYBE_PINS: [&str; 3] = ["pin", "atmpin", "debitpin"];

/// Classifies a JSON member by its name.
///
/// Ambiguous names such as `cid` and `pin` count only if the value has the digits of a security code or PIN.
pub fn named_authentication_data(name: &str, value: &Value) -> Option<AuthenticationData> {
    if value.is_null() || value.is_boolean() {
        return None;
    }
    let name: String = name
        .nfkc()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    let has_digits = |lengths: std::ops::RangeInclusive<usize>| {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return false,
        };
        in_compatibility_form(&text, |text| {
            lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let forms = forms_of(&name);
    let is = |names: &[&str]| forms.iter().any(|form| names.contains(form));
    if is(&SECURITY_CODES) || (is(&MAYBE_SECURITY_CODES) && has_digits(3..=4)) {
        return Some(SecurityCode);
    }
    if is(&TRACKS) || forms.iter().any(|form| is_numbered_track(form)) {
        return Some(Track);
    }
    // A `pincode` is a postal code.
    let is_pin = PINS.contains(&name.as_str())
        || name.contains("pinblock")
        || (MAYBE_PINS.contains(&name.as_str()) && has_digits(4..=12));
    is_pin.then_some(Pin)
}

/// Returns a name with and without its prefix and suffix.
fn forms_of(name: &str) -> [&str; 4] {
    let without_prefix = |name| strip(name, &NAME_PREFIXES, str::strip_prefix);
    let without_suffix = |name| strip(name, &NAME_SUFFIXES, str::strip_suffix);
    let bare = without_prefix(name);
    [name, bare, without_suffix(name), without_suffix(bare)]
}

fn strip<'a>(
    name: &'a str,
    affixes: &[&'static str],
    strip: fn(&'a str, &'static str) -> Option<&'a str>,
) -> &'a str {
    affixes
        .iter()
        .find_map(|affix| strip(name, affix).filter(|rest| !rest.is_empty()))
        .unwrap_or(name)
}

/// `track1`, `track2data`, `track2equivalentdata` and so on.
fn is_numbered_track(name: &str) -> bool {
    let rest = name.strip_prefix("track");
    let rest = rest.and_then(|rest| rest.strip_prefix(['1', '2', '3']));
    rest.is_some_and(|rest| ["", "data", "equivalent", "equivalentdata", "raw"].contains(&rest))
}

/// Finds the first member, at any depth, that is sensitive authentication data by name or content. Returns its kind and
/// its path, which starts with `path`.
pub fn find_authentication_data(value: &Value, path: &str) -> Option<(AuthenticationData, String)> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match named_authentication_data(name, value) {
                Some(data) => Some((data, path)),
                None if holds_track_data(name) => Some((Track, path)),
                None => find_authentication_data(value, &path),
            }
        }),
        Value::Array(elements) => elements.iter().enumerate().find_map(|(index, value)| {
            find_authentication_data(value, &format!("{path}[{index}]"))
        }),
        Value::String(text) => holds_track_data(text).then(|| (Track, path.to_owned())),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Number of PAN digits on a magnetic stripe.
const PAN_DIGITS: std::ops::RangeInclusive<usize> = 12..=19;
/// Digits after the PAN: expiry (YYMM) and service code.
const AFTER_PAN: usize = 7;
/// Maximum length of the name on track 1, including its separator.
const NAME_MAX: usize = 27;

/// Whether text contains track 1 (`%B…^…^…?`) or track 2 (`;…=…?`) of a magnetic stripe, with or without
/// sentinels. `D` is the field separator in the track 2 equivalent data of a chip.
pub fn holds_track_data(text: &str) -> bool {
    in_compatibility_form(text, |text| holds_track(text.as_bytes()))
}

fn holds_track(bytes: &[u8]) -> bool {
    let separators = bytes.iter().enumerate();
    separators
        .filter(|(_, byte)| b"^=Dd".contains(byte))
        .any(|(at, separator)| {
            let pan_digits = digits_before(&bytes[..at]);
            if !PAN_DIGITS.contains(&pan_digits) {
                return false;
            }
            let (before, pan) = bytes[..at].split_at(at - pan_digits);
            let after = &bytes[at + 1..];
            match separator {
                b'^' => is_track_1(before, after),
                _ => is_track_2(before, pan, after),
            }
        })
}

fn digits_before(bytes: &[u8]) -> usize {
    let digits = bytes.iter().rev().take(*PAN_DIGITS.end() + 1);
    digits.take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_track_1(before: &[u8], after: &[u8]) -> bool {
    let name = after.iter().take(NAME_MAX).position(|byte| *byte == b'^');
    let expiry = name.and_then(|end| after.get(end + 1..));
    before
        .last()
        .is_some_and(|format| format.eq_ignore_ascii_case(&b'B'))
        && expiry.is_some_and(|expiry| expiry.first().is_some_and(u8::is_ascii_digit))
}

fn is_track_2(before: &[u8], pan: &[u8], after: &[u8]) -> bool {
    let has_sentinel = before.last() == Some(&b';');
    let digits = after
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let has_month = match after {
        [_, _, b'0', b'1'..=b'9', ..] | [_, _, b'1', b'0'..=b'2', ..] => digits >= 4,
        _ => false,
    };
    has_month && (has_sentinel || (digits >= AFTER_PAN && passes_luhn(pan)))
}

#[cfg(test)]
mod tests;
