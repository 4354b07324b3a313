//! Numbers made of digits: how long each may be and which check it must pass.

use std::ops::RangeInclusive;

use crate::access::TenantKind;
use crate::api::Broken;
use crate::card_numbers::passes_luhn;

/// Numbers that are published for 3-D Secure tests although they fail the Luhn check.
const TEST_NUMBERS: [RangeInclusive<u64>; 3] = [
    4_100_000_000_000_003..=4_100_000_000_000_003,
    4_200_000_000_000_002..=4_200_000_000_000_017,
    6_011_601_160_116_011..=6_011_601_160_116_011,
];
/// The simulator reads the last digits of such a number one by one, so no check digit is left.
const SIMULATED: &str = "900010";

/// What a text of digits must be, and the words for it.
pub(super) struct Digits {
    pub rule: &'static str,
    pub is_card_number: bool,
    pub is_met: fn(&str, TenantKind) -> bool,
}

pub(super) const CARD_NUMBER: Digits = Digits {
    rule: "must be 13 to 19 digits without separators that pass the Luhn check",
    is_card_number: true,
    is_met: |text, tenant_kind| {
        are_digits(text, 13..=19)
            && (passes_luhn(text.as_bytes()) || is_test_number(text, tenant_kind))
    },
};

pub(super) const NETWORK_TOKEN_NUMBER: Digits = Digits {
    rule: "must be 12 to 19 digits without separators",
    is_card_number: false,
    is_met: |text, _| are_digits(text, 12..=19),
};

pub(super) const BANK_ACCOUNT_NUMBER: Digits = Digits {
    rule: "must be a string of 1 to 17 digits",
    is_card_number: false,
    is_met: |text, _| are_digits(text, 1..=17),
};

pub(super) const US_BANK_ACCOUNT_NUMBER: Digits = Digits {
    rule: "must be a string of 3 to 17 digits",
    is_card_number: false,
    is_met: |text, _| are_digits(text, 3..=17),
};

pub(super) const US_BANK_ROUTING_NUMBER: Digits = Digits {
    rule: "must be a string of 9 digits that pass the ABA check",
    is_card_number: false,
    is_met: |text, _| are_digits(text, 9..=9) && passes_aba(text.as_bytes()),
};

/// Social security numbers and employer identification numbers.
pub(super) const TAXPAYER_NUMBER: Digits = Digits {
    rule: "must be a string of 9 digits with or without dashes",
    is_card_number: false,
    is_met: |text, _| {
        let is_known = |byte: u8| byte == b'-' || byte.is_ascii_digit();
        text.bytes().all(is_known) && text.bytes().filter(|byte| *byte != b'-').count() == 9
    },
};

impl Digits {
    /// The rule, broken by what was given for it.
    pub(super) fn refuse(&self, path: impl Into<String>) -> Broken {
        match self.is_card_number {
            true => Broken::of_card_number(path, self.rule),
            false => Broken::new(path, self.rule),
        }
    }
}

/// Whether text is made of ASCII digits alone, as many as are allowed.
pub(super) fn are_digits(text: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_test_number(text: &str, tenant_kind: TenantKind) -> bool {
    tenant_kind == TenantKind::Test
        && text.len() == 16
        && (text.starts_with(SIMULATED)
            || text
                .parse()
                .is_ok_and(|number: u64| TEST_NUMBERS.iter().any(|range| range.contains(&number))))
}

/// The check digit of routing numbers; `digits` are ASCII digits.
fn passes_aba(digits: &[u8]) -> bool {
    let weights = [3, 7, 1].into_iter().cycle();
    let weighted = digits.iter().zip(weights);
    let sum: u32 = weighted
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    sum.is_multiple_of(10)
}
