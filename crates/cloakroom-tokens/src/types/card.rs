//! Validates the data of cards and network tokens.

use std::ops::RangeInclusive;

use cloakroom_core::access::TenantKind;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{
    AuthenticationData, NO_AUTHENTICATION_DATA, find_authentication_data, named_authentication_data,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::digits::DigitRule;
use super::members::{Member, Members};
use super::security_code::{self, SecurityCode};
use super::validate::{ValidatedData, path_without_number};

/// An integer member that may be sent as a string.
struct Integer {
    name: &'static str,
    digits_max: usize,
    range: RangeInclusive<u16>,
    rule: &'static str,
}

const EXPIRATION: [Integer; 2] = [
    Integer {
        name: "expiration_month",
        digits_max: 2,
        range: 1..=12,
        rule: "must be an integer from 1 to 12",
    },
    Integer {
        name: "expiration_year",
        digits_max: 4,
        range: 1000..=9999,
        rule: "must be an integer of 4 digits",
    },
];

/// Validates the data of a card or a network token and normalizes it into its stored form.
///
/// Month and year become integers, and the security code is removed under any of its names. Other sensitive
/// authentication data is rejected. Expired cards are accepted.
pub(super) fn validate(
    data: &RawValue,
    number: &DigitRule,
    tenant_kind: TenantKind,
) -> Result<ValidatedData, Vec<FieldError>> {
    let mut members = Members::parse(data).ok_or_else(|| {
        vec![FieldError::new(
            "data",
            "must be an object with a card number",
        )]
    })?;
    let mut broken = Vec::new();
    broken.extend(members.check("number", number, tenant_kind).err());
    for integer in &EXPIRATION {
        broken.extend(integer.normalize(&mut members).err());
    }
    let security_code = take_security_code(&mut members);
    broken.extend(forbidden_member(&members));
    match security_code {
        Ok(security_code) if broken.is_empty() => Ok(ValidatedData {
            data: members.to_json(data.get().len())?,
            security_code,
        }),
        taken => {
            broken.extend(taken.err());
            Err(broken)
        }
    }
}

impl Integer {
    fn normalize(&self, members: &mut Members<'_>) -> Result<(), FieldError> {
        let Some(member) = members.get(self.name) else {
            return Ok(());
        };
        if member.is_null() {
            members.remove(self.name);
            return Ok(());
        }
        let value = member
            .digits(1..=self.digits_max)
            .and_then(|digits| digits.expose().parse().ok())
            .filter(|value| self.range.contains(value))
            .ok_or_else(|| FieldError::new(format!("data.{}", self.name), self.rule))?;
        members.set(self.name, Member::Number(value));
        Ok(())
    }
}

/// Members whose validation excludes sensitive authentication data.
const CHECKED: [&str; 3] = ["number", "expiration_month", "expiration_year"];

/// Removes the security code under any of its names: `cvc`, `CVV`, `security_code` and so on. Official clients send it
/// as a string or as a number.
fn take_security_code(members: &mut Members<'_>) -> Result<SecurityCode, FieldError> {
    let mut names: Vec<String> = Vec::new();
    for (name, raw) in members.as_sent() {
        if name == security_code::MEMBER || is_security_code(name, raw) {
            names.push(name.to_owned());
        }
    }
    let mut code = SecurityCode::Absent;
    for name in &names {
        let path = || format!("data.{name}");
        if !matches!(code, SecurityCode::Absent) {
            return Err(FieldError::new(path(), "must be the only security code"));
        }
        code = match members.get(name) {
            None => SecurityCode::Absent,
            Some(member) if member.is_null() => SecurityCode::Removed,
            Some(member) => member
                .digits(3..=4)
                .map(SecurityCode::Given)
                .ok_or_else(|| FieldError::new(path(), "must be 3 or 4 digits"))?,
        };
        members.remove(name);
    }
    Ok(code)
}

fn is_security_code(name: &str, raw: &RawValue) -> bool {
    if CHECKED.contains(&name) {
        return false;
    }
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    named_authentication_data(name, &value) == Some(AuthenticationData::SecurityCode)
}

/// Rejects track data and PINs, and security codes below the top level.
fn forbidden_member(members: &Members<'_>) -> Option<FieldError> {
    let mut others = members
        .as_sent()
        .filter(|(name, _)| !CHECKED.contains(name));
    others.find_map(|(name, raw)| {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let path = format!("data.{name}");
        let found = match named_authentication_data(name, &value) {
            // Reported by `take_security_code`.
            Some(AuthenticationData::SecurityCode) => return None,
            Some(_) => Some(path),
            None => find_authentication_data(&value, &path).map(|(_, path)| path),
        };
        found.map(|path| FieldError::new(path_without_number(path), NO_AUTHENTICATION_DATA))
    })
}
