//! Amounts of money as cardholders read them.

use iso_currency::Currency;

use crate::language::Language;

/// Keeps amount and currency on one line.
const NO_BREAK_SPACE: char = '\u{a0}';
const NARROW_NO_BREAK_SPACE: char = '\u{202f}';

/// An amount in minor units of its currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// Decimal digits.
    minor_units: String,
    exponent: usize,
    currency: Currency,
}

impl Money {
    /// An amount in the minor units that ISO 4217 defines for the currency.
    pub fn new(minor_units: u64, currency: Currency) -> Self {
        Self {
            minor_units: minor_units.to_string(),
            exponent: currency.exponent().unwrap_or_default().into(),
            currency,
        }
    }

    /// An amount as in an authentication request: digits, an exponent, and a numeric or alphabetic code.
    pub fn parse(minor_units: &str, exponent: &str, currency: &str) -> Option<Self> {
        let is_number = |text: &str, digits_max: usize| {
            (1..=digits_max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(minor_units, 48) || !is_number(exponent, 1) {
            return None;
        }
        let by_number = currency.parse().ok().and_then(Currency::from_numeric);
        Some(Self {
            minor_units: minor_units.to_owned(),
            exponent: exponent.parse().ok()?,
            currency: by_number.or_else(|| Currency::from_code(currency))?,
        })
    }

    /// The amount in the conventions of a language.
    pub fn format(&self, language: Language) -> String {
        let number = self.number(language);
        let symbol = symbol(self.currency, language);
        let is_before = match language {
            Language::English => true,
            Language::Portuguese => self.currency == Currency::BRL,
            Language::German | Language::French | Language::Spanish => false,
        };
        match (is_before, symbol) {
            (true, "€" | "£" | "$") => format!("{symbol}{number}"),
            (true, _) => format!("{symbol}{NO_BREAK_SPACE}{number}"),
            (false, _) => format!("{number}{NO_BREAK_SPACE}{symbol}"),
        }
    }

    fn number(&self, language: Language) -> String {
        let (point, group) = match language {
            Language::English => ('.', ','),
            Language::French => (',', NARROW_NO_BREAK_SPACE),
            Language::German | Language::Spanish | Language::Portuguese => (',', '.'),
        };
        let digits = self.minor_units.trim_start_matches('0');
        let digits = format!("{digits:0>width$}", width = self.exponent + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.exponent);
        let mut number = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                number.push(group);
            }
            number.push(digit);
        }
        if !fraction.is_empty() {
            number.push(point);
            number.push_str(fraction);
        }
        number
    }
}

/// Symbols that are unambiguous in the language; other currencies are shown by their code.
fn symbol(currency: Currency, language: Language) -> &'static str {
    match (currency, language) {
        (Currency::EUR, _) => "€",
        (Currency::GBP, _) => "£",
        (Currency::USD, Language::English) => "$",
        (Currency::BRL, Language::Portuguese) => "R$",
        _ => currency.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_follow_the_conventions_of_the_language() {
        use Language::{English, French, German, Portuguese, Spanish};
        let cases = [
            ("4250", "2", "978", English, "€42.50"),
            ("4250", "2", "EUR", German, "42,50\u{a0}€"),
            (
                "123456789",
                "2",
                "978",
                French,
                "1\u{202f}234\u{202f}567,89\u{a0}€",
            ),
            ("123456", "2", "826", Spanish, "1.234,56\u{a0}£"),
            ("4250", "2", "986", Portuguese, "R$\u{a0}42,50"),
            ("4250", "2", "986", English, "BRL\u{a0}42.50"),
            ("4250", "2", "840", English, "$42.50"),
            ("4250", "2", "840", German, "42,50\u{a0}USD"),
            ("124", "2", "124", English, "CAD\u{a0}1.24"),
            ("5000", "0", "392", English, "JPY\u{a0}5,000"),
            ("5", "3", "048", English, "BHD\u{a0}0.005"),
            ("0", "2", "978", English, "€0.00"),
            ("000042", "2", "978", English, "€0.42"),
        ];
        for (amount, exponent, currency, language, expected) in cases {
            let money = Money::parse(amount, exponent, currency).unwrap();
            assert_eq!(money.format(language), expected, "{amount} {currency}");
        }
        assert_eq!(Money::new(4250, Currency::EUR).format(English), "€42.50");
        assert_eq!(
            Money::new(5000, Currency::JPY).format(German),
            "5.000\u{a0}JPY"
        );
    }

    #[test]
    fn other_texts_are_not_amounts() {
        let long = "1".repeat(49);
        let cases = [
            ("", "2", "978"),
            ("-1", "2", "978"),
            ("1.5", "2", "978"),
            ("<b>", "2", "978"),
            ("1", "", "978"),
            ("1", "12", "978"),
            ("1", "2", "000"),
            ("1", "2", "EURO"),
            ("1", "2", ""),
            (long.as_str(), "2", "978"),
        ];
        for (amount, exponent, currency) in cases {
            assert_eq!(
                Money::parse(amount, exponent, currency),
                None,
                "{amount} {exponent} {currency}"
            );
        }
    }
}
