//! What happens to an authentication: decided by the card number first, then by the amount.

use std::time::Duration;

use crate::cards;

/// Numbers that begin so are read digit by digit; see the table in the crate's documentation.
pub(crate) const DIGITS_BIN: &str = "900010";
const DIGITS_LENGTH: usize = 16;

/// How an AReq is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Final(Ending),
    Challenge(Challenge),
    Decoupled(Decoupled),
    /// Nothing comes within the time that a 3DS Server waits.
    Silence,
    /// An Erro by the directory server.
    Erro(&'static str),
}

/// A `transStatus` with its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ending {
    pub(crate) status: &'static str,
    pub(crate) reason: Option<&'static str>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Challenge {
    pub(crate) page: Page,
    /// `authenticationType`.
    pub(crate) kind: &'static str,
    pub(crate) is_mandated: bool,
    /// How it ends if the cardholder does everything right.
    pub(crate) ending: Ending,
    pub(crate) delivery: Delivery,
}

/// What the cardholder gets to see.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Page {
    Password,
    OneTimeCode,
    OutOfBand,
    /// Goes on without being asked.
    Automatic,
    /// Goes on as though the cardholder had pressed cancel.
    Cancelled,
}

/// How result (RReq) and end of the challenge (CRes) reach the 3DS Server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Delivery {
    ResultFirst,
    ResultOnly,
    ResultLate,
    WrongDirectoryId,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Decoupled {
    After(Ending),
    Never,
    TooLittleTime,
}

/// What an amount adds to an answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Extra {
    pub(crate) delay: Duration,
    pub(crate) has_cardholder_info: bool,
    pub(crate) has_critical_extension: bool,
    pub(crate) has_plain_extension: bool,
    /// An error code, with which the directory server refuses.
    pub(crate) erro: Option<&'static str>,
}

/// All codes of an Erro; an amount of 991000 and the code asks for one.
const ERROR_CODES: [&str; 21] = [
    "101", "102", "103", "201", "202", "203", "204", "205", "206", "207", "301", "302", "303",
    "304", "305", "306", "307", "402", "403", "404", "405",
];

const FAILED: [&str; 10] = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"];
const REJECTED: [&str; 10] = ["11", "12", "13", "14", "15", "16", "17", "18", "19", "20"];
const UNAVAILABLE: [&str; 10] = ["13", "14", "19", "20", "21", "22", "23", "24", "25", "26"];
const REFUSED: [&str; 10] = [
    "101", "102", "201", "203", "303", "305", "402", "403", "404", "405",
];

const PASSED: Ending = ending("Y", None);

const fn ending(status: &'static str, reason: Option<&'static str>) -> Ending {
    Ending { status, reason }
}

/// The answer by card number: test cards, then the digits of the special BIN, else success.
pub(crate) fn answer(number: &str) -> Answer {
    if let Some(card) = cards::find(number) {
        return by_card(card);
    }
    match digits(number) {
        Some([.., outcome, detail]) => by_digits(outcome, usize::from(detail)),
        None => Answer::Final(PASSED),
    }
}

/// The last four digits, `vmac`, of a number that is read digit by digit.
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

fn by_card(card: &cards::TestCard) -> Answer {
    let expected = card.expected();
    let reason = expected.final_reason;
    let Some(status) = expected.final_status else {
        return Answer::Erro("403");
    };
    let Some(kind) = expected.challenge_type else {
        return Answer::Final(Ending { status, reason });
    };
    Answer::Challenge(Challenge {
        page: match kind {
            "01" => Page::Password,
            "03" => Page::OutOfBand,
            _ => Page::OneTimeCode,
        },
        kind,
        is_mandated: expected.is_mandated,
        ending: Ending { status, reason },
        delivery: Delivery::ResultFirst,
    })
}

fn by_digits(outcome: u8, detail: usize) -> Answer {
    let pick = |table: [&'static str; 10]| table.get(detail).copied();
    match outcome {
        0 => Answer::Final(PASSED),
        1 => Answer::Final(ending("N", pick(FAILED))),
        2 => Answer::Final(ending("A", None)),
        3 => Answer::Final(ending("R", pick(REJECTED))),
        4 => Answer::Final(ending("I", None)),
        5 => Answer::Final(ending("U", pick(UNAVAILABLE))),
        6 => Answer::Silence,
        7 => Answer::Challenge(challenge(detail)),
        8 => Answer::Decoupled(match detail {
            1 => Decoupled::After(ending("N", Some("01"))),
            2 => Decoupled::Never,
            3 => Decoupled::TooLittleTime,
            _ => Decoupled::After(PASSED),
        }),
        _ => Answer::Erro(pick(REFUSED).unwrap_or("403")),
    }
}

fn challenge(detail: usize) -> Challenge {
    let automatic = Challenge {
        page: Page::Automatic,
        kind: "02",
        is_mandated: false,
        ending: PASSED,
        delivery: Delivery::ResultFirst,
    };
    let delivered = |delivery| Challenge {
        delivery,
        ..automatic.clone()
    };
    let ended = |ending| Challenge {
        ending,
        ..automatic.clone()
    };
    match detail {
        1 => ended(ending("N", Some("01"))),
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
            page: Page::Cancelled,
            ..automatic
        },
        5 => delivered(Delivery::ResultOnly),
        6 => delivered(Delivery::ResultLate),
        7 => delivered(Delivery::WrongDirectoryId),
        8 => ended(ending("U", Some("13"))),
        9 => ended(ending("R", Some("11"))),
        _ => automatic,
    }
}

/// What `purchaseAmount` asks for besides.
pub(crate) fn extra(amount: Option<&str>) -> Extra {
    let Some(amount) = amount else {
        return Extra::default();
    };
    match amount {
        "990101" => Extra {
            has_cardholder_info: true,
            ..Extra::default()
        },
        "990102" => Extra {
            has_critical_extension: true,
            ..Extra::default()
        },
        "990103" => Extra {
            has_plain_extension: true,
            ..Extra::default()
        },
        _ => Extra {
            delay: delay(amount),
            erro: amount.strip_prefix("991").and_then(error_code),
            ..Extra::default()
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
mod tests {
    use super::*;

    #[test]
    fn amounts_ask_for_delays_and_errors_and_nothing_else() {
        let cases = [
            ("990201", 1, None),
            ("990212", 12, None),
            ("990213", 0, None),
            ("990200", 0, None),
            ("9902012", 0, None),
            ("991303", 0, Some("303")),
            ("991405", 0, Some("405")),
            ("991999", 0, None),
            ("1000", 0, None),
        ];
        for (amount, seconds, erro) in cases {
            let extra = extra(Some(amount));
            assert_eq!(extra.delay, Duration::from_secs(seconds), "{amount}");
            assert_eq!(extra.erro, erro, "{amount}");
        }
    }

    #[test]
    fn every_outcome_can_be_reached_by_digits() {
        let of = |tail: &str| answer(&format!("900010000000{tail}"));
        assert_eq!(of("0000"), Answer::Final(PASSED));
        assert_eq!(of("2113"), Answer::Final(ending("N", Some("04"))));
        assert_eq!(of("0030"), Answer::Final(ending("R", Some("11"))));
        assert_eq!(of("0050"), Answer::Final(ending("U", Some("13"))));
        assert_eq!(of("0060"), Answer::Silence);
        assert_eq!(of("0094"), Answer::Erro("303"));
        assert_eq!(of("0082"), Answer::Decoupled(Decoupled::Never));
        assert!(matches!(of("0075"), Answer::Challenge(it) if it.delivery == Delivery::ResultOnly));
        assert_eq!(
            answer("9000100000000011999"),
            Answer::Final(PASSED),
            "only numbers of sixteen digits are read so"
        );
    }
}
