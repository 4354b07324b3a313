//! A submitted card, as far as a form decides about it. The data itself is validated like that of any token intent.

use std::collections::BTreeMap;

use cloakroom_core::access::TenantKind;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::one_line::one_line;
use cloakroom_tokens::types::{TokenKind, validate_data};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;

const MEMBERS: [&str; 4] = ["number", "expiration_month", "expiration_year", "cvc"];
const NAME_LENGTH_MAX: usize = 100;
/// A card is valid until the end of its month, everywhere.
const ZONES: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// The expiration date in normalized data.
#[derive(Deserialize)]
struct Expiration {
    expiration_month: i16,
    expiration_year: i16,
}

/// Requires exactly the members of the form, and an expiration date that is not in the past.
///
/// The date is that of the normalized data, in which strings are integers. Data that cannot be normalized is reported
/// by the validation of the token intent.
pub(super) fn check(card: &RawValue, tenant_kind: TenantKind, now: Timestamp) -> Vec<FieldError> {
    let members: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(card.get()).ok();
    let Some(members) = members else {
        return vec![FieldError::new("data", "must be an object")];
    };
    let is_missing = |name: &str| members.get(name).is_none_or(|value| value.get() == "null");
    let missing = MEMBERS.iter().filter(|name| is_missing(name));
    let missing = missing.map(|name| FieldError::new(format!("data.{name}"), "is required"));
    let mut errors: Vec<FieldError> = missing.collect();
    if members.keys().any(|name| !MEMBERS.contains(name)) {
        errors.push(FieldError::new(
            "data",
            "must contain only the members of a card",
        ));
    }
    let validated = validate_data(TokenKind::Card, card, tenant_kind).ok();
    let expiration = validated.and_then(|it| serde_json::from_slice(it.data.expose()).ok());
    if expiration.is_some_and(|expiration| is_past(&expiration, now)) {
        let rule = "must not be in the past";
        errors.push(FieldError::new("data.expiration_year", rule));
    }
    errors
}

fn is_past(expiration: &Expiration, now: Timestamp) -> bool {
    let earlier = now.checked_sub(ZONES).unwrap_or(now);
    let date = earlier.to_zoned(TimeZone::UTC).date();
    let current = (date.year(), i16::from(date.month()));
    (expiration.expiration_year, expiration.expiration_month) < current
}

/// Validates the name if the form requires it, and ignores it otherwise. The merchant reads the name, so it must not
/// contain a card number.
pub(super) fn validate_name(
    name: Option<&str>,
    is_required: bool,
) -> Result<Option<&str>, FieldError> {
    let error = |rule: String| FieldError::new("cardholder_name", rule);
    match (is_required, name) {
        (false, _) => Ok(None),
        (true, None) => Err(error("is required".to_owned())),
        (true, Some(name)) => one_line(name, NAME_LENGTH_MAX).map(Some).map_err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_have_the_members_of_the_form_and_are_not_expired() {
        let now: Timestamp = "2030-03-01T12:00:00Z".parse().unwrap();
        let late: Timestamp = "2030-03-03T12:00:00Z".parse().unwrap();
        let card = |month: &str, year: &str, more: &str| {
            let text = format!(
                r#"{{"number": "4242424242424242", "expiration_month": {month}, "expiration_year": {year}, "cvc": "123"{more}}}"#
            );
            RawValue::from_string(text).unwrap()
        };
        let cases = [
            (card("3", "2030", ""), now, ""),
            (card("2", "2030", ""), now, ""),
            (card("2", "2030", ""), late, "data.expiration_year"),
            (card("12", "2029", ""), now, "data.expiration_year"),
            (card("1", "2031", ""), now, ""),
            (card("\"12\"", "\"2029\"", ""), now, "data.expiration_year"),
            (card("12", "\"2029\"", ""), now, "data.expiration_year"),
            (card("\"03\"", "\"2030\"", ""), now, ""),
            (card("null", "2031", ""), now, "data.expiration_month"),
            (card("1", "null", ""), now, "data.expiration_year"),
            (card("3", "2030", r#", "pin": "1""#), now, "data"),
            (
                RawValue::from_string("{}".to_owned()).unwrap(),
                now,
                "data.number",
            ),
            (RawValue::from_string("[]".to_owned()).unwrap(), now, "data"),
        ];
        for (card, now, expected) in cases {
            let errors = check(&card, TenantKind::Test, now);
            let path = errors.first().map_or("", |error| error.path.as_str());
            assert_eq!(path, expected, "{card}");
        }
    }

    #[test]
    fn names_are_validated_if_required() {
        let long = "a".repeat(101);
        let cases = [
            (None, false, true),
            (None, true, false),
            (Some(""), true, false),
            (Some("  "), true, false),
            (Some("Ada Example"), true, true),
            (Some("Ada\nExample"), true, false),
            (Some(long.as_str()), true, false),
            (Some("4242 4242 4242 4242"), true, false),
            (Some("Ada 4242-4242-4242-4242"), true, false),
            // Ignored.
            (Some("Ada\nExample"), false, true),
        ];
        for (name, is_required, is_valid) in cases {
            let validated = validate_name(name, is_required);
            assert_eq!(validated.is_ok(), is_valid, "{name:?}");
        }
        assert_eq!(validate_name(Some(" Ada "), true), Ok(Some("Ada")));
    }
}
