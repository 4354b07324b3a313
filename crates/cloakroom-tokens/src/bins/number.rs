//! Card numbers as digits with a length, the key of every lookup.

/// Twelve to nineteen digits. Leading zeros count: numbers of different lengths never match.
#[derive(Clone, Copy)]
pub(super) struct CardNumber {
    value: u64,
    digits: u32,
}

/// The maximum length of a card number; prefixes are padded to it.
pub(super) const DIGITS_MAX: u32 = 19;
const DIGITS_MIN: u32 = 12;

impl CardNumber {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = u32::try_from(text.len()).ok()?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain || !(DIGITS_MIN..=DIGITS_MAX).contains(&digits) {
            return None;
        }
        let value = text.parse().ok()?;
        Some(Self { value, digits })
    }

    pub(super) fn value(self) -> u64 {
        self.value
    }

    pub(super) fn digits(self) -> u32 {
        self.digits
    }

    /// The leading digits, as a number; at most as many as every card number has.
    pub(super) fn first(self, digits: u32) -> u64 {
        self.value / 10_u64.pow(self.digits.saturating_sub(digits))
    }

    /// The number padded with zeros: its key in the space of prefixes.
    pub(super) fn padded(self) -> u64 {
        pad_low(self.value, self.digits)
    }
}

/// The lowest number of maximum length that starts with these digits.
pub(super) fn pad_low(value: u64, digits: u32) -> u64 {
    value * 10_u64.pow(DIGITS_MAX.saturating_sub(digits))
}

/// The highest number of maximum length that starts with these digits.
pub(super) fn pad_high(value: u64, digits: u32) -> u64 {
    let scale = 10_u64.pow(DIGITS_MAX.saturating_sub(digits));
    value * scale + (scale - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_twelve_to_nineteen_digits() {
        let cases = [
            ("424242424242", true),
            ("9999999999999999999", true),
            ("0000000000000000000", true),
            ("42424242424", false),
            ("99999999999999999999", false),
            ("4242 4242 4242 4242", false),
            ("４２４２４２４２４２４２", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(CardNumber::parse(text).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_are_padded_with_zeros_and_nines() {
        let number = CardNumber::parse("424242000000").unwrap();

        assert_eq!(number.padded(), 4_242_420_000_000_000_000);
        assert_eq!(number.first(6), 424_242);
        assert_eq!(pad_low(424_242, 6), 4_242_420_000_000_000_000);
        assert_eq!(pad_high(424_242, 6), 4_242_429_999_999_999_999);
        assert_eq!(
            pad_high(9_999_999_999_999_999_999, 19),
            9_999_999_999_999_999_999
        );
    }
}
