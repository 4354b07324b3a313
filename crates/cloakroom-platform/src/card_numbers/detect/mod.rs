//! Detection of card numbers in text.

use std::ops::Range;

use cloakroom_crypto::Sensitive;

use super::exempt::{find_known, find_uuid, is_barcode, is_time};
use super::in_compatibility_form;
use super::luhn::passes_luhn;
use super::scheme::lengths_of;

/// Number of digits of a card number.
const DIGITS_MIN: usize = 13;
const DIGITS_MAX: usize = 19;
/// Lengths at which any prefix counts, to detect numbers of issuers that are not in the table.
const ANY_PREFIX: Range<usize> = 16..DIGITS_MAX + 1;
/// Maximum number of characters between two groups of digits.
const SEPARATORS_MAX: usize = 3;
/// Shorter groups are typical of dates, times and amounts.
const GROUP_MIN: usize = 3;
/// Maximum number of card numbers extracted from one text.
const FOUND_MAX: usize = 100;
/// Marks different separators between two groups.
const MIXED: char = '\0';

/// Whether text contains a likely card number, with or without separators.
///
/// Applied to all data that is stored or logged in clear. A number must pass the Luhn check. In addition, either its
/// prefix and length match a scheme, or it is contiguous (or grouped as on a card), 16 to 19 digits long and starts
/// with 1 to 9. Longer runs of digits are searched for numbers of schemes at every position. UUIDs, digests, IBANs,
/// timestamps, barcodes, IPv6 addresses and international phone numbers are exempt. `corpus.rs` measures the false
/// negatives and false positives.
pub fn contains_card_number(text: &str) -> bool {
    let mut is_found = false;
    search(text, Rules::Clear, &mut |_| {
        is_found = true;
        Search::Stop
    });
    is_found
}

/// Returns the distinct numbers in text that pass the Luhn check, as digits only, at most 100.
///
/// The velocity limits count these. They include more than [`contains_card_number`] detects, because card tokens may have
/// any prefix.
pub fn card_numbers_in(text: &str) -> Vec<Sensitive<String>> {
    let mut found: Vec<Sensitive<String>> = Vec::new();
    search(text, Rules::Luhn, &mut |digits| {
        let is_new = found
            .iter()
            .all(|number| number.expose().as_bytes() != digits);
        if is_new && let Ok(number) = std::str::from_utf8(digits) {
            found.push(Sensitive::new(number.to_owned()));
        }
        match found.len() < FOUND_MAX {
            true => Search::Continue,
            false => Search::Stop,
        }
    });
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    Continue,
    Stop,
}

/// Criteria for a card number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Numbers that must not be stored in clear.
    Clear,
    /// All numbers that pass the Luhn check.
    Luhn,
}

/// Callback that receives the digits of each number.
type Visit<'a> = &'a mut dyn FnMut(&[u8]) -> Search;

fn search(text: &str, rules: Rules, visit: Visit<'_>) -> Search {
    in_compatibility_form(text, |text| search_text(text, rules, visit))
}

fn search_text(text: &str, rules: Rules, visit: Visit<'_>) -> Search {
    let find_exempt = match rules {
        Rules::Clear => find_known,
        Rules::Luhn => find_uuid,
    };
    let mut rest = text;
    while let Some(exempt) = find_exempt(rest) {
        if search_digits(&rest[..exempt.start], rules, visit) == Search::Stop {
            return Search::Stop;
        }
        rest = &rest[exempt.end..];
    }
    search_digits(rest, rules, visit)
}

/// Adjacent groups of digits.
#[derive(Default)]
struct Cluster {
    digits: Vec<u8>,
    groups: Vec<Group>,
}

struct Group {
    start: usize,
    /// Separator from the previous group, other than whitespace.
    mark: Option<char>,
}

fn search_digits(text: &str, rules: Rules, visit: Visit<'_>) -> Search {
    let mut cluster = Cluster::default();
    let mut separators = SEPARATORS_MAX + 1;
    let mut mark = None;
    for character in text.chars() {
        if let Some(digit) = decimal_digit(character) {
            if separators > SEPARATORS_MAX {
                if cluster.search(rules, visit) == Search::Stop {
                    return Search::Stop;
                }
                cluster = Cluster::default();
            }
            if separators > 0 {
                let start = cluster.digits.len();
                cluster.groups.push(Group { start, mark });
            }
            cluster.digits.push(digit);
            (separators, mark) = (0, None);
        } else if character.is_alphabetic() {
            separators = SEPARATORS_MAX + 1;
        } else {
            separators += 1;
            mark = match mark {
                _ if character.is_whitespace() => mark,
                Some(previous) if previous != character => Some(MIXED),
                _ => Some(character),
            };
        }
    }
    cluster.search(rules, visit)
}

/// Converts ASCII, Arabic-Indic and extended Arabic-Indic digits to ASCII.
fn decimal_digit(character: char) -> Option<u8> {
    const ZEROS: [char; 3] = ['0', '\u{0660}', '\u{06F0}'];
    ZEROS.into_iter().find_map(|zero| {
        let offset = u32::from(character).checked_sub(u32::from(zero))?;
        u8::try_from(offset)
            .ok()
            .filter(|digit| *digit < 10)
            .map(|digit| b'0' + digit)
    })
}

impl Cluster {
    fn search(&self, rules: Rules, visit: Visit<'_>) -> Search {
        for group in 0..self.groups.len() {
            if self.search_whole_groups(group, rules, visit) == Search::Stop
                || self.search_inside(group, rules, visit) == Search::Stop
                || self.search_quads(group, visit) == Search::Stop
            {
                return Search::Stop;
            }
        }
        Search::Continue
    }

    fn range(&self, group: usize) -> Range<usize> {
        let end = self.groups.get(group + 1);
        self.groups[group].start..end.map_or(self.digits.len(), |next| next.start)
    }

    /// Tries every run of whole groups that starts at `first` and has the length of a card number. A run has at most
    /// as many groups as a number has digits, so the time is linear in the length of the text.
    fn search_whole_groups(&self, first: usize, rules: Rules, visit: Visit<'_>) -> Search {
        let start = self.groups[first].start;
        let mut shape = Shape::default();
        for group in first..self.groups.len() {
            let range = self.range(group);
            let digits = &self.digits[start..range.end];
            if digits.len() > DIGITS_MAX {
                break;
            }
            let mark = self.groups[group].mark.filter(|_| group > first);
            shape.add(range.len(), mark);
            let is_number = digits.len() >= DIGITS_MIN
                && match rules {
                    Rules::Clear => is_card_number(digits, &shape),
                    Rules::Luhn => passes_luhn(digits),
                };
            if is_number && visit(digits) == Search::Stop {
                return Search::Stop;
            }
        }
        Search::Continue
    }

    /// Tries every position inside of a long group, for numbers of schemes with their usual length.
    fn search_inside(&self, group: usize, rules: Rules, visit: Visit<'_>) -> Search {
        let run = &self.digits[self.range(group)];
        if run.len() <= DIGITS_MIN {
            return Search::Continue;
        }
        if rules == Rules::Clear && is_time(run) {
            return Search::Continue;
        }
        for start in 0..run.len() {
            let lengths = lengths_of(&run[start..]);
            for length in DIGITS_MIN..=DIGITS_MAX {
                if length == run.len() || !lengths.has_usual(length) {
                    continue;
                }
                let Some(digits) = run.get(start..start + length) else {
                    break;
                };
                if passes_luhn(digits) && visit(digits) == Search::Stop {
                    return Search::Stop;
                }
            }
        }
        Search::Continue
    }

    /// Tries four groups of four digits with additional digits directly before or after them.
    fn search_quads(&self, first: usize, visit: Visit<'_>) -> Search {
        if first + 4 > self.groups.len() {
            return Search::Continue;
        }
        let lengths = [0, 1, 2, 3].map(|group| self.range(first + group).len());
        let is_shaped = matches!(lengths, [before, 4, 4, after]
            if before >= 4 && after >= 4 && before + after > 8);
        if !is_shaped {
            return Search::Continue;
        }
        let start = self.range(first).end - 4;
        let digits = &self.digits[start..start + 16];
        if lengths_of(digits).has_usual(16) && passes_luhn(digits) {
            return visit(digits);
        }
        Search::Continue
    }
}

/// Grouping of the digits of a number.
#[derive(Default)]
struct Shape {
    groups: usize,
    short_groups: usize,
    first_length: usize,
    last_length: usize,
    /// Whether every group but the last is as long as the first.
    is_even: bool,
    mark: Option<char>,
    has_several_marks: bool,
    is_amex: bool,
}

impl Shape {
    fn add(&mut self, length: usize, mark: Option<char>) {
        match self.groups {
            0 => {
                self.first_length = length;
                self.is_even = true;
            }
            _ => self.is_even &= self.last_length == self.first_length,
        }
        self.is_amex = match self.groups {
            0 => length == 4,
            1 => self.is_amex && (5..=6).contains(&length),
            _ => self.is_amex && self.groups == 2 && (4..=6).contains(&length),
        };
        self.groups += 1;
        self.last_length = length;
        self.short_groups += usize::from(length < GROUP_MIN);
        if let Some(mark) = mark {
            self.has_several_marks |= self.mark.is_some_and(|previous| previous != mark);
            self.mark = Some(mark);
        }
    }

    /// Whether the number is one group, or grouped as printed on cards.
    fn is_strict(&self) -> bool {
        let is_quads = self.is_even && self.first_length == 4 && self.last_length <= 4;
        self.groups == 1 || (!self.has_several_marks && (is_quads || self.is_amex))
    }

    /// Whether a person could plausibly group a number like this.
    fn is_loose(&self) -> bool {
        let is_even = self.is_even && self.last_length <= self.first_length;
        self.groups == 1 || (!self.has_several_marks && (is_even || self.short_groups <= 1))
    }
}

/// Whether 13 to 19 digits are a card number.
fn is_card_number(digits: &[u8], shape: &Shape) -> bool {
    let length = digits.len();
    let schemes = lengths_of(digits);
    let is_run = shape.groups == 1;
    let is_of_scheme = schemes.has(length)
        && shape.is_loose()
        && (schemes.has_usual(length) || !(is_run && is_barcode(digits)));
    let may_have_any_prefix = digits[0] != b'0'
        && shape.is_strict()
        && (ANY_PREFIX.contains(&length) || schemes.has_weak(length))
        && !(is_run && is_time(digits));
    (is_of_scheme || may_have_any_prefix) && passes_luhn(digits)
}

#[cfg(test)]
mod tests;
