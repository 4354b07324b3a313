//! Cards and network tokens: what their data must look like.

use std::ops::RangeInclusive;

use serde_json::value::RawValue;

use super::digits::Digits;
use super::members::{Member, Members};
use super::security_code::{self, SecurityCode};
use super::settle::Settled;
use crate::access::TenantKind;
use crate::api::Broken;

/// A member that is an integer and may be sent as text.
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

/// Checks the data of a card, or of what stands for one, and brings it into the form that is kept.
///
/// Month and year become integers, and the security code is taken out. Whether the card has
/// expired is nobody's business here.
pub(super) fn settle(
    data: &RawValue,
    number: &Digits,
    tenant_kind: TenantKind,
) -> Result<Settled, Vec<Broken>> {
    let mut members = Members::parse(data)
        .ok_or_else(|| vec![Broken::new("data", "must be an object with a card number")])?;
    let mut broken = Vec::new();
    broken.extend(members.check("number", number, tenant_kind).err());
    for integer in &EXPIRATION {
        broken.extend(integer.settle(&mut members).err());
    }
    let security_code = take_security_code(&mut members);
    match security_code {
        Ok(security_code) if broken.is_empty() => Ok(Settled {
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
    fn settle(&self, members: &mut Members<'_>) -> Result<(), Broken> {
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
            .ok_or_else(|| Broken::new(format!("data.{}", self.name), self.rule))?;
        members.set(self.name, Member::Number(value));
        Ok(())
    }
}

/// Official clients send the code as a string or as a number.
fn take_security_code(members: &mut Members<'_>) -> Result<SecurityCode, Broken> {
    let code = match members.get(security_code::MEMBER) {
        None => SecurityCode::Absent,
        Some(member) if member.is_null() => SecurityCode::Removed,
        Some(member) => member
            .digits(3..=4)
            .map(SecurityCode::Given)
            .ok_or_else(|| Broken::new("data.cvc", "must be 3 or 4 digits"))?,
    };
    members.remove(security_code::MEMBER);
    Ok(code)
}
