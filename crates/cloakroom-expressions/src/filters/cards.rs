//! Filters that reveal a part of a value, and filters on card numbers and expiration dates.

use serde_json::Value;

use super::{Filter, FilterArgs, FilterResult, NO_ARGUMENTS};
use crate::{EvaluationError, OUTPUT_BYTES_MAX};

const COUNT_AND_MASK: &str = "a count and optionally a mask character";
const LENGTH_AND_CHARACTER: &str = "a length and a character";

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("last4", 0..=0, NO_ARGUMENTS, last4),
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

fn last4(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| {
        let start = text.chars().count().saturating_sub(4);
        Ok(text.chars().skip(start).collect())
    })
}

fn pad_left(args: &FilterArgs<'_>) -> FilterResult {
    let padding = padding(args)?;
    args.map_text(|text| Ok(padding + text))
}

fn pad_right(args: &FilterArgs<'_>) -> FilterResult {
    let padding = padding(args)?;
    args.map_text(|text| Ok(text.to_owned() + &padding))
}

fn padding(args: &FilterArgs<'_>) -> Result<String, EvaluationError> {
    let (length, character) = (args.count(0, 0)?, args.character(1, ' ')?);
    if length > OUTPUT_BYTES_MAX {
        return Err(EvaluationError::TooLarge);
    }
    let missing = length.saturating_sub(args.text_or_empty()?.chars().count());
    args.charge(missing)?;
    Ok(std::iter::repeat_n(character, missing).collect())
}

/// Masks the characters between the revealed ends. Masks all of them if otherwise none would be masked.
fn reveal(args: &FilterArgs<'_>) -> FilterResult {
    let (first, last) = (args.count(0, 0)?, args.count(1, 0)?);
    let mask = args.character(2, 'X')?;
    let preserved = args.argument(3)?;
    args.map_text(|text| {
        let length = text.chars().count();
        let masked = |first: usize, last: usize| -> String {
            let end = length.saturating_sub(last);
            let mask_character = |(position, character)| {
                let is_revealed =
                    position < first || end <= position || preserved.contains(character);
                if is_revealed { character } else { mask }
            };
            text.chars().enumerate().map(mask_character).collect()
        };
        Ok(mask_all_if_unmasked(text, masked(first, last), || {
            masked(0, 0)
        }))
    })
}

fn mask_all_if_unmasked(text: &str, masked: String, mask_all: impl FnOnce() -> String) -> String {
    if masked == text { mask_all() } else { masked }
}

/// Masks all but the last characters. Hyphens are preserved. A value that is not longer is shown in full.
fn reveal_last(args: &FilterArgs<'_>) -> FilterResult {
    let (last, mask) = (args.count(0, 0)?, args.character(1, 'X')?);
    args.map_text(|text| {
        let end = text.chars().count().saturating_sub(last);
        let mask_character = |(position, character)| {
            let is_revealed = end <= position || character == '-';
            if is_revealed { character } else { mask }
        };
        Ok(text.chars().enumerate().map(mask_character).collect())
    })
}

/// The length of the BIN of a card number with `digits` digits.
pub(super) fn bin_length(digits: usize) -> usize {
    if digits >= 16 { 8 } else { 6 }
}

/// Like `reveal`, but does not count preserved characters.
fn card_mask(args: &FilterArgs<'_>) -> FilterResult {
    let (reveals_bin, reveals_last4) = (args.flag(0)?, args.flag(1)?);
    let mask = args.character(2, 'X')?;
    let preserved = args.argument(3)?;
    args.map_text(|text| {
        let counts = |character: char| !preserved.contains(character);
        let digits = text.chars().filter(|character| counts(*character)).count();
        let first = if reveals_bin { bin_length(digits) } else { 0 };
        let last = if reveals_last4 { 4 } else { 0 };
        let masked = |first: usize, last: usize| -> String {
            let end = digits.saturating_sub(last);
            let mut position = 0;
            let mask_character = |character| {
                if !counts(character) {
                    return character;
                }
                let is_revealed = position < first || end <= position;
                position += 1;
                if is_revealed { character } else { mask }
            };
            text.chars().map(mask_character).collect()
        };
        Ok(mask_all_if_unmasked(text, masked(first, last), || {
            masked(0, 0)
        }))
    })
}

fn card_bin(args: &FilterArgs<'_>) -> FilterResult {
    let separator = args.argument(0)?;
    args.map_text(|text| {
        let digits = text.chars().filter(|digit| !separator.contains(*digit));
        let length = bin_length(digits.clone().count());
        Ok(digits.take(length).collect())
    })
}

/// Replaces `YYYY`, `YY` and `MM` in the format.
fn card_exp(args: &FilterArgs<'_>) -> FilterResult {
    let format = args.argument(0)?;
    let missing = || EvaluationError::NoExpiry(args.filter);
    let member = |name| parse_integer(args.input.get(name)?);
    let month = member("expiration_month").ok_or_else(missing)?;
    let year = member("expiration_year").ok_or_else(missing)?;
    let year = if year < 100 { 2000 + year } else { year };

    let mut result = String::new();
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
        result.push_str(&part);
        rest = &rest[length..];
    }
    Ok(result.into())
}

/// A non-negative integer, as a number or as text.
fn parse_integer(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
