//! Selects the outcome of an authentication by card number, and additional effects by amount.

use std::time::Duration;

use crate::cards;

/// The last digits of numbers in this BIN select the outcome; see the crate documentation.
pub(crate) const DIGITS_BIN: &str = "900010";
const DIGITS_LENGTH: usize = 16;

/// The response to an AReq.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    Final(FinalStatus),
    Challenge(Challenge),
    Decoupled(Decoupled),
    /// No response within the timeout of a 3DS Server.
    NoResponse,
    /// An Erro from the DS, with this code.
    Erro(&'static str),
}

/// A final `transStatus` and its `transStatusReason`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FinalStatus {
    pub(crate) status: &'static str,
    pub(crate) reason: Option<&'static str>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Challenge {
    pub(crate) page: Page,
    /// `authenticationType`.
    pub(crate) kind: &'static str,
    pub(crate) is_mandated: bool,
    /// The result if the cardholder's input is valid.
    pub(crate) final_status: FinalStatus,
    pub(crate) delivery: ResultDelivery,
}

/// The challenge page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Page {
    Password,
    OneTimeCode,
    OutOfBand,
    /// Completes without cardholder input.
    Automatic,
    /// Completes as if the cardholder canceled.
    Canceled,
}

/// When the RReq is sent, relative to the CRes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ResultDelivery {
    BeforeCres,
    WithoutCres,
    AfterCres,
    WrongDsTransId,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Decoupled {
    Completes(FinalStatus),
    Never,
    InsufficientTime,
}

/// Effects of `purchaseAmount` on the response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct AmountEffects {
    pub(crate) delay: Duration,
    pub(crate) has_cardholder_info: bool,
    pub(crate) has_critical_extension: bool,
    pub(crate) has_plain_extension: bool,
    /// Respond with an Erro with this code.
    pub(crate) erro: Option<&'static str>,
}

/// All codes of an Erro; an amount of 991000 plus the code selects one.
const ERROR_CODES: [&str; 21] = [
    "101", "102", "103", "201", "202", "203", "204", "205", "206", "207", "301", "302", "303",
    "304", "305", "306", "307", "402", "403", "404", "405",
];

const FAILED_REASONS: [&str; 10] = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"];
const REJECTED_REASONS: [&str; 10] = ["11", "12", "13", "14", "15", "16", "17", "18", "19", "20"];
const UNAVAILABLE_REASONS: [&str; 10] =
    ["13", "14", "19", "20", "21", "22", "23", "24", "25", "26"];
const ERRO_CODES: [&str; 10] = [
    "101", "102", "201", "203", "303", "305", "402", "403", "404", "405",
];

const AUTHENTICATED: FinalStatus = final_status("Y", None);

const fn final_status(status: &'static str, reason: Option<&'static str>) -> FinalStatus {
    FinalStatus { status, reason }
}

/// The outcome of a card number: test cards first, then the digits BIN, otherwise success.
pub(crate) fn decide(number: &str) -> Decision {
    if let Some(card) = cards::find(number) {
        return for_test_card(card);
    }
    match digits(number) {
        Some([.., outcome, detail]) => for_digits(outcome, usize::from(detail)),
        None => Decision::Final(AUTHENTICATED),
    }
}

/// The last four digits, `vmac`, of a number in the digits BIN.
pub(crate) fn digits(number: &str) -> Option<[u8; 4]> {
    if !number.starts_with(DIGITS_BIN) || number.len() != DIGITS_LENGTH {
        return None;
    }
    let tail: [u8; 4] = number
        .as_bytes()
        .get(DIGITS_LENGTH - 4..)?
        .try_into()
        .ok()?;
    Some(tail.map(|digit| digit.saturating_sub(b'0')))
}

fn for_test_card(card: &cards::TestCard) -> Decision {
    let expected = card.expected();
    let reason = expected.final_reason;
    let Some(status) = expected.final_status else {
        return Decision::Erro("403");
    };
    let Some(kind) = expected.challenge_type else {
        return Decision::Final(FinalStatus { status, reason });
    };
    Decision::Challenge(Challenge {
        page: match kind {
            "01" => Page::Password,
            "03" => Page::OutOfBand,
            _ => Page::OneTimeCode,
        },
        kind,
        is_mandated: expected.is_mandated,
        final_status: FinalStatus { status, reason },
        delivery: ResultDelivery::BeforeCres,
    })
}

fn for_digits(outcome: u8, detail: usize) -> Decision {
    let pick = |table: [&'static str; 10]| table.get(detail).copied();
    match outcome {
        0 => Decision::Final(AUTHENTICATED),
        1 => Decision::Final(final_status("N", pick(FAILED_REASONS))),
        2 => Decision::Final(final_status("A", None)),
        3 => Decision::Final(final_status("R", pick(REJECTED_REASONS))),
        4 => Decision::Final(final_status("I", None)),
        5 => Decision::Final(final_status("U", pick(UNAVAILABLE_REASONS))),
        6 => Decision::NoResponse,
        7 => Decision::Challenge(challenge(detail)),
        8 => Decision::Decoupled(match detail {
            1 => Decoupled::Completes(final_status("N", Some("01"))),
            2 => Decoupled::Never,
            3 => Decoupled::InsufficientTime,
            _ => Decoupled::Completes(AUTHENTICATED),
        }),
        _ => Decision::Erro(pick(ERRO_CODES).unwrap_or("403")),
    }
}

fn challenge(detail: usize) -> Challenge {
    let automatic = Challenge {
        page: Page::Automatic,
        kind: "02",
        is_mandated: false,
        final_status: AUTHENTICATED,
        delivery: ResultDelivery::BeforeCres,
    };
    let with_delivery = |delivery| Challenge {
        delivery,
        ..automatic.clone()
    };
    let with_status = |final_status| Challenge {
        final_status,
        ..automatic.clone()
    };
    match detail {
        1 => with_status(final_status("N", Some("01"))),
        2 => Challenge {
            page: Page::OneTimeCode,
            ..automatic
        },
        3 => Challenge {
            page: Page::OutOfBand,
            kind: "03",
            ..automatic
        },
        4 => Challenge {
            page: Page::Canceled,
            ..automatic
        },
        5 => with_delivery(ResultDelivery::WithoutCres),
        6 => with_delivery(ResultDelivery::AfterCres),
        7 => with_delivery(ResultDelivery::WrongDsTransId),
        8 => with_status(final_status("U", Some("13"))),
        9 => with_status(final_status("R", Some("11"))),
        _ => automatic,
    }
}

/// The effects that `purchaseAmount` selects.
pub(crate) fn amount_effects(amount: Option<&str>) -> AmountEffects {
    let Some(amount) = amount else {
        return AmountEffects::default();
    };
    match amount {
        "990101" => AmountEffects {
            has_cardholder_info: true,
            ..AmountEffects::default()
        },
        "990102" => AmountEffects {
            has_critical_extension: true,
            ..AmountEffects::default()
        },
        "990103" => AmountEffects {
            has_plain_extension: true,
            ..AmountEffects::default()
        },
        _ => AmountEffects {
            delay: delay(amount),
            erro: amount.strip_prefix("991").and_then(error_code),
            ..AmountEffects::default()
        },
    }
}

fn delay(amount: &str) -> Duration {
    let seconds = amount
        .strip_prefix("9902")
        .filter(|rest| rest.len() == 2)
        .and_then(|rest| rest.parse().ok())
        .filter(|seconds| (1..=12).contains(seconds));
    Duration::from_secs(seconds.unwrap_or(0))
}

pub(crate) fn error_code(code: &str) -> Option<&'static str> {
    ERROR_CODES.iter().find(|known| **known == code).copied()
}

#[cfg(test)]
mod tests;
