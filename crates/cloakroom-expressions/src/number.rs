//! Exact decimal arithmetic on JSON numbers. Preserves the number of decimal places.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// `mantissa` divided by ten to the power of `scale`.
///
/// Scale zero is an integer. Decimal places are preserved: 19.90 has two and stays 19.90.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: i128,
    scale: u32,
}

/// Maximum number of decimal places or trailing zeros; more than any amount needs.
const SCALE_MAX: u32 = 30;

/// Decimal places of a quotient that does not terminate.
const DIVISION_PLACES: u32 = 16;

/// Parses a number and removes leading zeros, which JSON does not allow.
pub(crate) fn number_from_text(text: &str) -> Option<Number> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let whole = digits.find('.').unwrap_or(digits.len());
    let zeros = digits[..whole].len() - digits[..whole].trim_start_matches('0').len();
    let digits = &digits[zeros.min(whole.saturating_sub(1))..];
    format!("{sign}{digits}").parse().ok()
}

impl Decimal {
    pub(crate) const ZERO: Self = Self::integer(0);

    pub(crate) const fn integer(value: i128) -> Self {
        Self {
            mantissa: value,
            scale: 0,
        }
    }

    pub(crate) fn from_number(number: &Number) -> Option<Self> {
        Self::parse(number.as_str())
    }

    /// Parses a JSON number. `None` if it is invalid or too large for exact arithmetic.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        if text.bytes().all(is_digit) {
            return text.parse().ok().map(Self::integer);
        }
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        let unsigned = whole.strip_prefix('-').unwrap_or(whole);
        let is_digits = |text: &str| text.bytes().all(is_digit);
        if unsigned.is_empty() || !is_digits(unsigned) || !is_digits(places) {
            return None;
        }

        let mantissa: i128 = format!("{whole}{places}").parse().ok()?;
        let scale = i32::try_from(places.len()).ok()?.checked_sub(exponent)?;
        match u32::try_from(scale) {
            Ok(scale) if scale <= SCALE_MAX => Some(Self { mantissa, scale }),
            Ok(_) => None,
            Err(_) => Self { mantissa, scale: 0 }.shifted(scale.unsigned_abs()),
        }
    }

    pub(crate) fn is_integer(self) -> bool {
        self.scale == 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(crate) fn to_value(self) -> Option<Value> {
        self.to_string().parse().ok().map(Value::Number)
    }

    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        let (left, right, _) = self.aligned(other)?;
        Some(left.cmp(&right))
    }

    pub(crate) fn abs(self) -> Option<Self> {
        let mantissa = self.mantissa.checked_abs()?;
        Some(Self { mantissa, ..self })
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        let mantissa = left.checked_add(right)?;
        Some(Self { mantissa, scale })
    }

    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        let mantissa = left.checked_sub(right)?;
        Some(Self { mantissa, scale })
    }

    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let product = Self {
            mantissa: self.mantissa.checked_mul(other.mantissa)?,
            scale: self.scale + other.scale,
        };
        let product = product.trimmed(self.scale.max(other.scale));
        (product.scale <= SCALE_MAX).then_some(product)
    }

    /// The quotient of two integers is an integer, rounded down. The divisor must not be zero.
    pub(crate) fn divided_by(self, other: Self) -> Option<Self> {
        if self.is_integer() && other.is_integer() {
            return floor_divide(self.mantissa, other.mantissa).map(Self::integer);
        }
        let (mut left, right, _) = self.aligned(other)?;
        let mut scale = 0;
        while scale < DIVISION_PLACES {
            let Some(shifted) = left.checked_mul(10) else {
                break;
            };
            left = shifted;
            scale += 1;
        }
        let mantissa = left.checked_div(right)?;
        Some(Self { mantissa, scale }.trimmed(1))
    }

    /// The remainder has the sign of the divisor, which must not be zero.
    pub(crate) fn modulo(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        let quotient = floor_divide(left, right)?;
        let mantissa = left.checked_sub(quotient.checked_mul(right)?)?;
        Some(Self { mantissa, scale })
    }

    pub(crate) fn floor(self) -> Option<Self> {
        floor_divide(self.mantissa, power_of_ten(self.scale)?).map(Self::integer)
    }

    pub(crate) fn ceil(self) -> Option<Self> {
        let negated = floor_divide(self.mantissa.checked_neg()?, power_of_ten(self.scale)?)?;
        Some(Self::integer(negated.checked_neg()?))
    }

    /// Rounds half away from zero. A number with fewer places is returned unchanged.
    pub(crate) fn round(self, places: u32) -> Option<Self> {
        let Some(surplus) = self.scale.checked_sub(places) else {
            return Some(self);
        };
        let unit = power_of_ten(surplus)?;
        let half = if surplus == 0 { 0 } else { unit / 2 };
        let away = half.checked_mul(self.mantissa.signum())?;
        Some(Self {
            mantissa: self.mantissa.checked_add(away)? / unit,
            scale: places,
        })
    }

    fn shifted(self, places: u32) -> Option<Self> {
        let mantissa = self.mantissa.checked_mul(power_of_ten(places)?)?;
        Some(Self { mantissa, ..self })
    }

    /// Both mantissas, scaled to the larger of the two scales.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let left = self.shifted(scale - self.scale)?;
        let right = other.shifted(scale - other.scale)?;
        Some((left.mantissa, right.mantissa, scale))
    }

    /// Removes trailing zeros down to `places` decimal places.
    fn trimmed(mut self, places: u32) -> Self {
        while self.scale > places && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs().to_string();
        let scale = self.scale as usize;
        if scale == 0 {
            return write!(formatter, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, places) = digits.split_at(digits.len() - scale);
        write!(formatter, "{sign}{whole}.{places}")
    }
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

fn floor_divide(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    let is_uneven = left.checked_rem(right)? != 0;
    let rounds_up = is_uneven && (left < 0) != (right < 0);
    Some(if rounds_up { quotient - 1 } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_preserve_their_decimal_places() {
        let cases = [
            ("19.90", Some("19.90")),
            ("-0.05", Some("-0.05")),
            ("12", Some("12")),
            ("1e3", Some("1000")),
            ("1.5E-2", Some("0.015")),
            ("1e400", None),
            ("1e-31", None),
            ("--1", None),
            ("1.", Some("1")),
            ("", None),
        ];
        for (text, expected) in cases {
            let result = Decimal::parse(text).map(|decimal| decimal.to_string());
            assert_eq!(result.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn leading_zeros_are_removed() {
        let cases = [("007", "7"), ("0", "0"), ("00.50", "0.50"), ("-01", "-1")];
        for (text, expected) in cases {
            let number = number_from_text(text).map(|number| number.to_string());
            assert_eq!(number.as_deref(), Some(expected), "{text}");
        }
    }
}
