//! Noticing card numbers, above all where they must not be.

use cloakroom_crypto::Sensitive;

/// Digits up to which groups may be joined, and characters that may stand between two groups.
const DIGITS_MAX: usize = 19;
const DIGITS_MIN: usize = 13;
const SEPARATORS_MAX: usize = 3;
/// Numbers that one text is searched for; nobody guesses at a text that holds more.
const FOUND_MAX: usize = 100;

const UUID_LENGTH: usize = 36;
const UUID_FIRST_GROUP: usize = 8;

/// What is said where a card number must not be.
pub(crate) const NO_CARD_NUMBER: &str = "must not hold a card number: it is kept in clear";

/// Whether text holds what looks like a card number, with or without separators.
///
/// Used where card numbers must not be: better one harmless value refused than one card kept clear.
/// Every run of neighbouring groups of digits is tried, so that an expiry or a security code beside
/// a number does not hide it. UUIDs are left out: one in eight hundred would be taken for a card.
pub(crate) fn holds_card_number(text: &str) -> bool {
    visit(text, &mut |_| Visit::Stop) == Visit::Stop
}

/// The different card numbers in text, as digits alone; of very many, the first ones.
pub(crate) fn card_numbers_in(text: &str) -> Vec<Sensitive<String>> {
    let mut found: Vec<Sensitive<String>> = Vec::new();
    visit(text, &mut |digits| {
        let is_new = found
            .iter()
            .all(|number| number.expose().as_bytes() != digits);
        if is_new && let Ok(number) = std::str::from_utf8(digits) {
            found.push(Sensitive::new(number.to_owned()));
        }
        match found.len() < FOUND_MAX {
            true => Visit::GoOn,
            false => Visit::Stop,
        }
    });
    found
}

/// Whether there is more to look at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    GoOn,
    Stop,
}

/// Shows everything in text that looks like a card number.
fn visit(text: &str, see: &mut dyn FnMut(&[u8]) -> Visit) -> Visit {
    let mut rest = text;
    while let Some((before, after)) = split_at_uuid(rest) {
        if visit_digits(before, see) == Visit::Stop {
            return Visit::Stop;
        }
        rest = after;
    }
    visit_digits(rest, see)
}

/// What stands before and after the first UUID.
fn split_at_uuid(text: &str) -> Option<(&str, &str)> {
    let mut dashes = text.match_indices('-').map(|(dash, _)| dash);
    dashes.find_map(|dash| {
        let start = dash.checked_sub(UUID_FIRST_GROUP)?;
        let end = start + UUID_LENGTH;
        let is_alone = !text.get(..start)?.ends_with(char::is_alphanumeric)
            && !text.get(end..)?.starts_with(char::is_alphanumeric);
        (is_alone && is_uuid(&text[start..end])).then(|| (&text[..start], &text[end..]))
    })
}

/// Whether text is a UUID without room for a card number: half of one is as long as a card number,
/// so both halves must have a letter.
fn is_uuid(text: &str) -> bool {
    let is_shaped = text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let has_letter = |half: &str| half.contains(|c: char| c.is_ascii_alphabetic());
    is_shaped && has_letter(&text[..18]) && has_letter(&text[19..])
}

fn visit_digits(text: &str, see: &mut dyn FnMut(&[u8]) -> Visit) -> Visit {
    let mut digits: Vec<u8> = Vec::new();
    let mut group_starts: Vec<usize> = Vec::new();
    let mut separators = SEPARATORS_MAX + 1;
    for character in text.chars() {
        if let Some(digit) = decimal_digit(character) {
            if separators > SEPARATORS_MAX {
                if visit_windows(&digits, &group_starts, see) == Visit::Stop {
                    return Visit::Stop;
                }
                digits.clear();
                group_starts.clear();
            }
            if separators > 0 {
                group_starts.push(digits.len());
            }
            digits.push(digit);
            separators = 0;
        } else if character.is_alphabetic() {
            separators = SEPARATORS_MAX + 1;
        } else {
            separators += 1;
        }
    }
    visit_windows(&digits, &group_starts, see)
}

/// ASCII digits, and those of other scripts that people paste: full-width and Arabic ones.
fn decimal_digit(character: char) -> Option<u8> {
    const ZEROS: [char; 4] = ['0', '\u{FF10}', '\u{0660}', '\u{06F0}'];
    ZEROS.into_iter().find_map(|zero| {
        let offset = u32::from(character).checked_sub(u32::from(zero))?;
        u8::try_from(offset)
            .ok()
            .filter(|digit| *digit < 10)
            .map(|digit| b'0' + digit)
    })
}

/// Tries every run of whole groups that has the length of a card number. A run has no more groups than
/// a number has digits, so that text of any length costs in proportion to it.
fn visit_windows(
    digits: &[u8],
    group_starts: &[usize],
    see: &mut dyn FnMut(&[u8]) -> Visit,
) -> Visit {
    for (group, &start) in group_starts.iter().enumerate() {
        let later = group_starts.iter().skip(group + 1).copied();
        let ends = later
            .chain([digits.len()])
            .take_while(|end| end - start <= DIGITS_MAX)
            .filter(|end| end - start >= DIGITS_MIN);
        for end in ends {
            let window = &digits[start..end];
            if is_card_like(window) && see(window) == Visit::Stop {
                return Visit::Stop;
            }
        }
    }
    Visit::GoOn
}

/// Digits that start like a card and pass the Luhn check.
fn is_card_like(digits: &[u8]) -> bool {
    let starts_like_card = matches!(
        digits,
        [b'4' | b'6', ..]
            | [b'5', b'1'..=b'9', ..]
            | [b'2', b'2'..=b'7', ..]
            | [b'3', b'0' | b'4'..=b'9', ..]
            | [b'8', b'1', ..]
    );
    starts_like_card && passes_luhn(digits)
}

/// The check digit of card numbers; `digits` are ASCII digits.
pub(crate) fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| {
            let value = u32::from(digit - b'0');
            match position % 2 {
                0 => value,
                _ => value / 5 + value * 2 % 10,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_noticed_in_text() {
        let cases = [
            ("4242424242424242", true),
            ("4242 4242 4242 4242", true),
            ("order 4242-4242-4242-4242!", true),
            ("378282246310005", true),
            ("4242424242424242 123", true),
            ("12 4242424242424242", true),
            ("4242424242424242 12/30", true),
            ("4242424242424242-1", true),
            ("4242.4242.4242.4242", true),
            ("4242_4242_4242_4242", true),
            ("4242\u{a0}4242\t4242  4242", true),
            ("4242\u{2013}4242\u{2013}4242\u{2013}4242", true),
            ("\u{ff14}242424242424242", true),
            ("PAN4242424242424242exp", true),
            ("{\"number\":\"4242424242424242\"}", true),
            ("42424242424242424242", false),
            ("4242 a 4242 a 4242 a 4242", false),
            ("4242424242424241", false),
            ("1234567890123452", false),
            ("2026-11-15 10:00:00", false),
            ("c06d0789-0a38-40be-b7cc-c28a718f76f1", false),
            ("49b56700-4912-4733-8318-9e9a0e055286", false),
            ("/49B56700-4912-4733-8318-9E9A0E055286/x", false),
            ("x49b56700-4912-4733-8318-9e9a0e055286", true),
            ("49b56700-4912-4733-8318-9e9a0e0552860", true),
            ("49b56700-4912-4733-8318-9e9a0e05528g", true),
            ("42424242-4242-4242-a234-56789abcdef0", true),
            ("a2345678-9abc-def0-4242-424242424242", true),
            ("42424242-4242-4242-4242-424242424242", true),
            (
                "49b56700-4912-4733-8318-9e9a0e055286 4242424242424242",
                true,
            ),
            (
                "4242424242424242 49b56700-4912-4733-8318-9e9a0e055286",
                true,
            ),
            (
                "4242-4242-4242-4242-49b56700-4912-4733-8318-9e9a0e055286",
                true,
            ),
            ("é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é", false),
            ("42424242", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(holds_card_number(text), expected, "{text}");
        }
    }

    #[test]
    fn card_numbers_are_taken_out_of_text_once_each() {
        let many: String = (0..200)
            .map(|n| format!("{:012}", 400_000_000_000_u64 + n))
            .flat_map(|start| (0..10).map(move |end| format!("{start}000{end} x ")))
            .collect();
        let cases: [(&str, &[&str]); 4] = [
            ("order 42", &[]),
            (
                "4242-4242-4242-4242 and 4242424242424242",
                &["4242424242424242"],
            ),
            (
                "{\"a\":\"378282246310005\",\"b\":4242424242424242}",
                &["378282246310005", "4242424242424242"],
            ),
            ("4.242424242424242e15", &["4242424242424242"]),
        ];
        for (text, expected) in cases {
            let found = card_numbers_in(text);
            let found: Vec<&str> = found.iter().map(|n| n.expose().as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(card_numbers_in(&many).len(), FOUND_MAX);
    }

    #[test]
    fn a_megabyte_of_single_digits_costs_little() {
        let started = std::time::Instant::now();

        let found = holds_card_number(&"1 ".repeat(500_000));

        assert!(!found);
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
    }
}
