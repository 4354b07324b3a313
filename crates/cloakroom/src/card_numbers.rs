//! Noticing card numbers, above all where they must not be.

/// Whether text holds what looks like a card number, with or without separators.
///
/// Used where card numbers must not be: better one harmless value refused than one card kept clear.
pub(crate) fn holds_card_number(text: &str) -> bool {
    let mut digits: Vec<u8> = Vec::new();
    let mut separated = false;
    for byte in text.bytes().chain([b'.']) {
        match byte {
            b'0'..=b'9' => {
                digits.push(byte);
                separated = false;
            }
            b' ' | b'-' if !separated && !digits.is_empty() => separated = true,
            _ => {
                if digits_hold_card_number(&digits) {
                    return true;
                }
                digits.clear();
                separated = false;
            }
        }
    }
    false
}

/// A whole run of 13 to 19 digits that starts like a card and passes the Luhn check.
fn digits_hold_card_number(digits: &[u8]) -> bool {
    let starts_like_card = matches!(
        digits,
        [b'4' | b'6', ..]
            | [b'5', b'1'..=b'9', ..]
            | [b'2', b'2'..=b'7', ..]
            | [b'3', b'0' | b'4'..=b'9', ..]
            | [b'8', b'1', ..]
    );
    (13..=19).contains(&digits.len()) && starts_like_card && passes_luhn(digits)
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
            ("4242424242424241", false),
            ("1234567890123452", false),
            ("2026-11-15 10:00:00", false),
            ("c06d0789-0a38-40be-b7cc-c28a718f76f1", false),
            ("42424242", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(holds_card_number(text), expected, "{text}");
        }
    }
}
