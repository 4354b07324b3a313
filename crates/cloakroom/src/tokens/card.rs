//! Cards: what their data must look like, and what of it may be shown.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::members::{Member, Members};
use crate::access::TenantKind;
use crate::api::Broken;
use crate::card_numbers::passes_luhn;

const NUMBER_RULE: &str = "must be 13 to 19 digits without separators that pass the Luhn check";

/// Numbers that card networks publish for 3-D Secure tests although they fail the Luhn check.
const TEST_NUMBERS: std::ops::RangeInclusive<u64> = 4_200_000_000_000_002..=4_200_000_000_000_017;

/// Checks a card's data and brings it into the form that is kept.
///
/// Month and year become integers. The security code is checked and left out: it may not be kept
/// under a key that outlives it, and short-lived keys for it do not exist yet.
pub(super) fn settle(data: &RawValue, tenant_kind: TenantKind) -> Result<Vec<u8>, Vec<Broken>> {
    let mut members: Members<'_> = serde_json::from_str(data.get())
        .map_err(|_| vec![Broken::new("data", "must be an object with a card number")])?;
    let mut broken = Vec::new();
    match members.get("number").and_then(text) {
        Some(number) if is_card_number(&number, tenant_kind) => {}
        _ => broken.push(Broken::new("data.number", NUMBER_RULE)),
    }
    let fields = [
        (
            "expiration_month",
            1..=12,
            "must be an integer from 1 to 12",
        ),
        (
            "expiration_year",
            1000..=9999,
            "must be an integer of 4 digits",
        ),
    ];
    for (name, range, rule) in fields {
        match members.get(name).map(integer) {
            None => {}
            Some(Some(None)) => members.remove(name),
            Some(Some(Some(value))) if range.contains(&value) => {
                members.set(name, Member::Number(value));
            }
            Some(_) => broken.push(Broken::new(format!("data.{name}"), rule)),
        }
    }
    if members.get("cvc").is_some_and(|cvc| !is_security_code(cvc)) {
        broken.push(Broken::new("data.cvc", "must be 3 or 4 digits"));
    }
    members.remove("cvc");
    if broken.is_empty() {
        let settled = serde_json::to_vec(&members);
        return settled.map_err(|_| vec![Broken::new("data", "must be expressible as JSON")]);
    }
    Err(broken)
}

/// What a card shows of itself to everyone who may see the token.
#[derive(Debug, Serialize, ToSchema)]
pub struct CardDetails {
    /// Leading digits that name the issuer: 8 of numbers with 16 digits or more, else 6.
    bin: String,
    last4: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_month: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_year: Option<u64>,
    /// Null while no BIN data is loaded.
    brand: Option<String>,
    funding: Option<String>,
    authentication: Option<String>,
}

impl CardDetails {
    /// Reads the details off a card's data.
    pub(super) fn of(data: &Value) -> Option<Self> {
        let number = data.get("number")?.as_str()?;
        let bin_length = if number.len() < 16 { 6 } else { 8 };
        Some(Self {
            bin: number.get(..bin_length)?.to_owned(),
            last4: number.get(number.len() - 4..)?.to_owned(),
            expiration_month: data.get("expiration_month").and_then(Value::as_u64),
            expiration_year: data.get("expiration_year").and_then(Value::as_u64),
            brand: None,
            funding: None,
            authentication: None,
        })
    }
}

fn is_card_number(number: &str, tenant_kind: TenantKind) -> bool {
    let digits = number.as_bytes();
    if !(13..=19).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let is_test_number = tenant_kind == TenantKind::Test
        && number
            .parse()
            .is_ok_and(|number: u64| TEST_NUMBERS.contains(&number));
    passes_luhn(digits) || is_test_number
}

fn is_security_code(cvc: &Member<'_>) -> bool {
    let Member::AsSent(raw) = cvc else {
        return false;
    };
    if raw.get() == "null" {
        return true;
    }
    // Official clients send the code as a string or as a number.
    let digits = text(cvc).unwrap_or_else(|| raw.get().to_owned());
    (3..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// An integer that was sent as a number or as digits in a string; the inner `None` is a null.
fn integer(member: &Member<'_>) -> Option<Option<u16>> {
    let Member::AsSent(raw) = member else {
        return None;
    };
    if raw.get() == "null" {
        return Some(None);
    }
    let digits = text(member).unwrap_or_else(|| raw.get().to_owned());
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten().map(Some)
}

fn text(member: &Member<'_>) -> Option<String> {
    let Member::AsSent(raw) = member else {
        return None;
    };
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(data: &str, tenant_kind: TenantKind) -> Result<String, Vec<String>> {
        let raw: &RawValue = serde_json::from_str(data).unwrap();
        settle(raw, tenant_kind)
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|broken| broken.into_iter().map(|broken| broken.path).collect())
    }

    #[test]
    fn card_data_is_checked_and_settled() {
        let cases: [(&str, Result<&str, &[&str]>); 16] = [
            (
                r#"{"number":"4242424242424242"}"#,
                Ok(r#"{"number":"4242424242424242"}"#),
            ),
            (
                r#"{"number":"4242424242424242","expiration_month":"02","expiration_year":"2030"}"#,
                Ok(r#"{"number":"4242424242424242","expiration_month":2,"expiration_year":2030}"#),
            ),
            (
                r#"{"note":19.90,"number":"378282246310005","cvc":1234}"#,
                Ok(r#"{"note":19.90,"number":"378282246310005"}"#),
            ),
            (
                r#"{"number":"4242424242424242","cvc":"123","expiration_month":null}"#,
                Ok(r#"{"number":"4242424242424242"}"#),
            ),
            (
                r#"{"number":"4200000000000002"}"#,
                Ok(r#"{"number":"4200000000000002"}"#),
            ),
            (r#"{"number":"4242424242424241"}"#, Err(&["data.number"])),
            (r#"{"number":"4242-4242-4242-4242"}"#, Err(&["data.number"])),
            (r#"{"number":4242424242424242}"#, Err(&["data.number"])),
            (r#"{"number":"424242424242"}"#, Err(&["data.number"])),
            (r#"{}"#, Err(&["data.number"])),
            (r#""4242424242424242""#, Err(&["data"])),
            (
                r#"{"number":"4242424242424242","expiration_month":13}"#,
                Err(&["data.expiration_month"]),
            ),
            (
                r#"{"number":"4242424242424242","expiration_month":1.5}"#,
                Err(&["data.expiration_month"]),
            ),
            (
                r#"{"number":"4242424242424242","expiration_year":30}"#,
                Err(&["data.expiration_year"]),
            ),
            (
                r#"{"number":"4242424242424242","cvc":"12a"}"#,
                Err(&["data.cvc"]),
            ),
            (
                r#"{"number":"1","expiration_year":"x","cvc":12}"#,
                Err(&["data.number", "data.expiration_year", "data.cvc"]),
            ),
        ];
        for (data, expected) in cases {
            let expected = expected
                .map(str::to_owned)
                .map_err(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
            assert_eq!(settled(data, TenantKind::Test), expected, "{data}");
        }
        assert!(settled(r#"{"number":"4200000000000002"}"#, TenantKind::Production).is_err());
    }

    #[test]
    fn details_show_the_bin_by_length_and_the_last_four() {
        let cases = [
            ("4242424242424242", "42424242"),
            ("378282246310005", "378282"),
        ];
        for (number, bin) in cases {
            let details = CardDetails::of(&serde_json::json!({ "number": number })).unwrap();
            assert_eq!(details.bin, bin);
            assert_eq!(details.last4, number[number.len() - 4..]);
        }
    }
}
