//! Filters that show a part of a value, or a card's number and expiry.

use serde_json::Value;

use super::{Applied, Filter, Given, NOTHING};
use crate::{EvaluationError, OUTPUT_BYTES_MAX};

const COUNT_AND_MASK: &str = "a count and optionally a mask character";
const LENGTH_AND_CHARACTER: &str = "a length and a character";

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("last4", 0..=0, NOTHING, last4),
    Filter::new("pad_left", 2..=2, LENGTH_AND_CHARACTER, pad_left),
    Filter::new("pad_right", 2..=2, LENGTH_AND_CHARACTER, pad_right),
    Filter::new(
        "reveal",
        0..=4,
        "up to a first and a last count, a mask character and characters to preserve",
        reveal,
    ),
    Filter::new("reveal_last", 1..=2, COUNT_AND_MASK, reveal_last),
    Filter::new(
        "card_mask",
        0..=4,
        "up to two flags, a mask character and a character to preserve",
        card_mask,
    ),
    Filter::new("card_bin", 0..=1, "up to a separator", card_bin),
    Filter::new("card_exp", 1..=1, "a format", card_exp),
];

fn last4(given: &Given<'_>) -> Applied {
    given.null_or(|text| {
        let start = text.chars().count().saturating_sub(4);
        Ok(text.chars().skip(start).collect())
    })
}

fn pad_left(given: &Given<'_>) -> Applied {
    let padding = padding(given)?;
    given.null_or(|text| Ok(padding + text))
}

fn pad_right(given: &Given<'_>) -> Applied {
    let padding = padding(given)?;
    given.null_or(|text| Ok(text.to_owned() + &padding))
}

fn padding(given: &Given<'_>) -> Result<String, EvaluationError> {
    let (length, character) = (given.count(0, 0)?, given.character(1, ' ')?);
    if length > OUTPUT_BYTES_MAX {
        return Err(EvaluationError::TooLarge);
    }
    let missing = length.saturating_sub(given.text_or_empty()?.chars().count());
    given.spend(missing)?;
    Ok(std::iter::repeat_n(character, missing).collect())
}

/// Masks what lies between the revealed ends, or everything if that would mask nothing.
fn reveal(given: &Given<'_>) -> Applied {
    let (first, last) = (given.count(0, 0)?, given.count(1, 0)?);
    let mask = given.character(2, 'X')?;
    let preserved = given.argument(3)?;
    given.null_or(|text| {
        let length = text.chars().count();
        let masked = |first: usize, last: usize| -> String {
            let end = length.saturating_sub(last);
            let show = |(position, character)| {
                let kept = position < first || end <= position || preserved.contains(character);
                if kept { character } else { mask }
            };
            text.chars().enumerate().map(show).collect()
        };
        Ok(unless_it_hides_nothing(text, masked(first, last), || {
            masked(0, 0)
        }))
    })
}

fn unless_it_hides_nothing(text: &str, partly: String, wholly: impl FnOnce() -> String) -> String {
    if partly == text { wholly() } else { partly }
}

/// Masks all but the end. Hyphens stay, and a value no longer than the end is shown whole.
fn reveal_last(given: &Given<'_>) -> Applied {
    let (last, mask) = (given.count(0, 0)?, given.character(1, 'X')?);
    given.null_or(|text| {
        let end = text.chars().count().saturating_sub(last);
        let show = |(position, character)| {
            let kept = end <= position || character == '-';
            if kept { character } else { mask }
        };
        Ok(text.chars().enumerate().map(show).collect())
    })
}

/// How many digits name the issuer of a card number with that many digits.
pub(super) fn bin_length(digits: usize) -> usize {
    if digits >= 16 { 8 } else { 6 }
}

/// As `reveal`, counting only what is not preserved.
fn card_mask(given: &Given<'_>) -> Applied {
    let (reveals_bin, reveals_last4) = (given.flag(0)?, given.flag(1)?);
    let mask = given.character(2, 'X')?;
    let preserved = given.argument(3)?;
    given.null_or(|text| {
        let counts = |character: char| !preserved.contains(character);
        let digits = text.chars().filter(|character| counts(*character)).count();
        let first = if reveals_bin { bin_length(digits) } else { 0 };
        let last = if reveals_last4 { 4 } else { 0 };
        let masked = |first: usize, last: usize| -> String {
            let end = digits.saturating_sub(last);
            let mut position = 0;
            let show = |character| {
                if !counts(character) {
                    return character;
                }
                let kept = position < first || end <= position;
                position += 1;
                if kept { character } else { mask }
            };
            text.chars().map(show).collect()
        };
        Ok(unless_it_hides_nothing(text, masked(first, last), || {
            masked(0, 0)
        }))
    })
}

fn card_bin(given: &Given<'_>) -> Applied {
    let separator = given.argument(0)?;
    given.null_or(|text| {
        let digits = text.chars().filter(|digit| !separator.contains(*digit));
        let length = bin_length(digits.clone().count());
        Ok(digits.take(length).collect())
    })
}

/// Replaces `YYYY`, `YY` and `MM` in the format.
fn card_exp(given: &Given<'_>) -> Applied {
    let format = given.argument(0)?;
    let missing = || EvaluationError::NoExpiry(given.filter);
    let member = |name| whole(given.input.get(name)?);
    let month = member("expiration_month").ok_or_else(missing)?;
    let year = member("expiration_year").ok_or_else(missing)?;
    let year = if year < 100 { 2000 + year } else { year };

    let mut shown = String::new();
    let mut rest = &*format;
    while let Some(character) = rest.chars().next() {
        let (part, length) = if rest.starts_with("YYYY") {
            (format!("{year:04}"), 4)
        } else if rest.starts_with("YY") {
            (format!("{:02}", year % 100), 2)
        } else if rest.starts_with("MM") {
            (format!("{month:02}"), 2)
        } else {
            (character.to_string(), character.len_utf8())
        };
        shown.push_str(&part);
        rest = &rest[length..];
    }
    Ok(shown.into())
}

/// A whole number, written as a number or as text.
fn whole(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
