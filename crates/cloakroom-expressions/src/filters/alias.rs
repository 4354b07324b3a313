//! Filters that replace a value by random characters of the same format.

use super::cards::bin_length;
use super::{Filter, FilterArgs, FilterResult, Kind};
use crate::EvaluationError;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("alias_card", 0..=2, "up to two flags", alias_card).with_kind(Kind::Random),
    Filter::new(
        "alias_preserve_format",
        0..=2,
        "up to a first and a last count",
        alias_preserve_format,
    )
    .with_kind(Kind::Random),
    Filter::new(
        "alias_preserve_length",
        0..=2,
        "up to a first and a last count",
        alias_preserve_length,
    )
    .with_kind(Kind::Random),
];

const DIGITS: &[u8] = b"0123456789";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Replaces the digits, except the revealed ones. Other characters are preserved.
fn alias_card(args: &FilterArgs<'_>) -> FilterResult {
    let (reveals_bin, reveals_last4) = (args.flag(0)?, args.flag(1)?);
    args.map_text(|text| {
        let is_digit = |character: char| character.is_ascii_digit();
        let digits = text
            .chars()
            .filter(|character| is_digit(*character))
            .count();
        let first = if reveals_bin { bin_length(digits) } else { 0 };
        let last = if reveals_last4 { 4 } else { 0 };
        // A number that is not longer than its revealed digits would be its own alias.
        if first + last > 0 && digits <= first + last {
            return Err(EvaluationError::TooShort(args.filter));
        }
        let mut random = RandomBytes::draw(args, digits)?;
        let mut position = 0;
        let mut replace = |character| {
            if !is_digit(character) {
                return character;
            }
            let is_revealed = position < first || digits - last <= position;
            position += 1;
            if is_revealed {
                character
            } else {
                random.pick(DIGITS)
            }
        };
        Ok(text.chars().map(&mut replace).collect())
    })
}

fn alias_preserve_format(args: &FilterArgs<'_>) -> FilterResult {
    between_ends(args, |character, random| {
        if character.is_alphabetic() {
            random.pick(LETTERS)
        } else if character.is_numeric() {
            random.pick(DIGITS)
        } else {
            character
        }
    })
}

fn alias_preserve_length(args: &FilterArgs<'_>) -> FilterResult {
    between_ends(args, |_, random| random.pick(LETTERS_AND_DIGITS))
}

/// Replaces all characters except the first and the last few.
fn between_ends(
    args: &FilterArgs<'_>,
    replace: impl Fn(char, &mut RandomBytes) -> char,
) -> FilterResult {
    let (first, last) = (args.count(0, 0)?, args.count(1, 0)?);
    args.map_text(|text| {
        let length = text.chars().count();
        let end = length.saturating_sub(last);
        let mut random = RandomBytes::draw(args, length)?;
        let mut replace = |(position, character)| {
            let is_revealed = position < first || end <= position;
            if is_revealed {
                character
            } else {
                replace(character, &mut random)
            }
        };
        Ok(text.chars().enumerate().map(&mut replace).collect())
    })
}

/// Random bytes, drawn in one call and consumed four at a time.
struct RandomBytes {
    bytes: Vec<u8>,
}

impl RandomBytes {
    /// Draws enough bytes for `picks` characters.
    fn draw(args: &FilterArgs<'_>, picks: usize) -> Result<Self, EvaluationError> {
        let unavailable = EvaluationError::Unavailable(args.filter);
        let random = args.sources.random.ok_or(unavailable)?;
        let size = picks.saturating_mul(4);
        args.charge(size)?;
        let mut bytes = vec![0; size];
        random(&mut bytes);
        Ok(Self { bytes })
    }

    /// Picks one of the characters. 32 bits over at most 36 characters have a negligible bias.
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
