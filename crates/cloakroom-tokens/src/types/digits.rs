//! Rules for numbers given as digits: lengths and check digits.

use std::ops::RangeInclusive;

use cloakroom_core::access::TenantKind;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::passes_luhn;

/// Published 3-D Secure test numbers that fail the Luhn check.
const TEST_NUMBERS: [RangeInclusive<u64>; 3] = [
    4_100_000_000_000_003..=4_100_000_000_000_003,
    4_200_000_000_000_002..=4_200_000_000_000_017,
    6_011_601_160_116_011..=6_011_601_160_116_011,
];
/// The simulator interprets the last digits of these numbers, which leaves no check digit.
const SIMULATOR_PREFIX: &str = "900010";

/// A rule for a string of digits, and its error text.
pub(super) struct DigitRule {
    pub rule: &'static str,
    pub is_card_number: bool,
    pub accepts: fn(&str, TenantKind) -> bool,
}

pub(super) const CARD_NUMBER: DigitRule = DigitRule {
    rule: "must be 13 to 19 digits without separators that pass the Luhn check",
    is_card_number: true,
    accepts: |text, tenant_kind| {
        are_digits(text, 13..=19)
            && (passes_luhn(text.as_bytes()) || is_test_number(text, tenant_kind))
    },
};

pub(super) const NETWORK_TOKEN_NUMBER: DigitRule = DigitRule {
    rule: "must be 12 to 19 digits without separators",
    is_card_number: false,
    accepts: |text, _| are_digits(text, 12..=19),
};

pub(super) const BANK_ACCOUNT_NUMBER: DigitRule = DigitRule {
    rule: "must be a string of 1 to 17 digits",
    is_card_number: false,
    accepts: |text, _| are_digits(text, 1..=17),
};

pub(super) const US_BANK_ACCOUNT_NUMBER: DigitRule = DigitRule {
    rule: "must be a string of 3 to 17 digits",
    is_card_number: false,
    accepts: |text, _| are_digits(text, 3..=17),
};

pub(super) const US_BANK_ROUTING_NUMBER: DigitRule = DigitRule {
    rule: "must be a string of 9 digits that pass the ABA check",
    is_card_number: false,
    accepts: |text, _| are_digits(text, 9..=9) && passes_aba(text.as_bytes()),
};

/// Social security numbers and employer identification numbers.
pub(super) const TAXPAYER_NUMBER: DigitRule = DigitRule {
    rule: "must be a string of 9 digits with or without dashes",
    is_card_number: false,
    accepts: |text, _| {
        let is_known = |byte: u8| byte == b'-' || byte.is_ascii_digit();
        text.bytes().all(is_known) && text.bytes().filter(|byte| *byte != b'-').count() == 9
    },
};

impl DigitRule {
    /// The error for a value that violates the rule.
    pub(super) fn error(&self, path: impl Into<String>) -> FieldError {
        match self.is_card_number {
            true => FieldError::of_card_number(path, self.rule),
            false => FieldError::new(path, self.rule),
        }
    }
}

/// Whether text consists of ASCII digits and has an allowed length.
pub(super) fn are_digits(text: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_test_number(text: &str, tenant_kind: TenantKind) -> bool {
    tenant_kind == TenantKind::Test
        && text.len() == 16
        && (text.starts_with(SIMULATOR_PREFIX)
            || text
                .parse()
                .is_ok_and(|number: u64| TEST_NUMBERS.iter().any(|range| range.contains(&number))))
}

/// Verifies the check digit of a routing number, given as ASCII digits.
fn passes_aba(digits: &[u8]) -> bool {
    let weights = [3, 7, 1].into_iter().cycle();
    let weighted = digits.iter().zip(weights);
    let sum: u32 = weighted
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    sum.is_multiple_of(10)
}
