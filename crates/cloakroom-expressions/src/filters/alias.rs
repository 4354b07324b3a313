//! Filters that put chance in the place of a value and keep its form.

use super::cards::bin_length;
use super::{Applied, Filter, Given, Mark};
use crate::EvaluationError;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("alias_card", 0..=2, "up to two flags", alias_card).marked(Mark::Random),
    Filter::new(
        "alias_preserve_format",
        0..=2,
        "up to a first and a last count",
        alias_preserve_format,
    )
    .marked(Mark::Random),
    Filter::new(
        "alias_preserve_length",
        0..=2,
        "up to a first and a last count",
        alias_preserve_length,
    )
    .marked(Mark::Random),
];

const DIGITS: &[u8] = b"0123456789";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Keeps everything but the digits, and of those the ones that are to be revealed.
fn alias_card(given: &Given<'_>) -> Applied {
    let (reveals_bin, reveals_last4) = (given.flag(0)?, given.flag(1)?);
    given.null_or(|text| {
        let is_digit = |character: char| character.is_ascii_digit();
        let digits = text
            .chars()
            .filter(|character| is_digit(*character))
            .count();
        let first = if reveals_bin { bin_length(digits) } else { 0 };
        let last = if reveals_last4 { 4 } else { 0 };
        // A number no longer than what is revealed would be its own alias.
        if first + last > 0 && digits <= first + last {
            return Err(EvaluationError::TooShort(given.filter));
        }
        let mut chance = Chance::of(given, digits)?;
        let mut position = 0;
        let mut replace = |character| {
            if !is_digit(character) {
                return character;
            }
            let kept = position < first || digits - last <= position;
            position += 1;
            if kept { character } else { chance.pick(DIGITS) }
        };
        Ok(text.chars().map(&mut replace).collect())
    })
}

fn alias_preserve_format(given: &Given<'_>) -> Applied {
    between_ends(given, |character, chance| {
        if character.is_alphabetic() {
            chance.pick(LETTERS)
        } else if character.is_numeric() {
            chance.pick(DIGITS)
        } else {
            character
        }
    })
}

fn alias_preserve_length(given: &Given<'_>) -> Applied {
    between_ends(given, |_, chance| chance.pick(LETTERS_AND_DIGITS))
}

/// Replaces all characters but the first and the last few.
fn between_ends(given: &Given<'_>, replace: impl Fn(char, &mut Chance) -> char) -> Applied {
    let (first, last) = (given.count(0, 0)?, given.count(1, 0)?);
    given.null_or(|text| {
        let length = text.chars().count();
        let end = length.saturating_sub(last);
        let mut chance = Chance::of(given, length)?;
        let mut replace = |(position, character)| {
            let kept = position < first || end <= position;
            if kept {
                character
            } else {
                replace(character, &mut chance)
            }
        };
        Ok(text.chars().enumerate().map(&mut replace).collect())
    })
}

/// Random bytes, drawn at once and used up four at a time.
struct Chance {
    bytes: Vec<u8>,
}

impl Chance {
    /// Enough for `picks`.
    fn of(given: &Given<'_>, picks: usize) -> Result<Self, EvaluationError> {
        let unavailable = EvaluationError::Unavailable(given.filter);
        let random = given.sources.random.ok_or(unavailable)?;
        let size = picks.saturating_mul(4);
        given.spend(size)?;
        let mut bytes = vec![0; size];
        random(&mut bytes);
        Ok(Self { bytes })
    }

    /// One of the characters; 32 bits over at most 36 of them favour none noticeably.
    fn pick(&mut self, characters: &[u8]) -> char {
        let mut drawn = [0; 4];
        for byte in &mut drawn {
            *byte = self.bytes.pop().unwrap_or(0);
        }
        let number = u64::from(u32::from_le_bytes(drawn));
        let position = (number * characters.len() as u64) >> 32;
        characters[position as usize].into()
    }
}
