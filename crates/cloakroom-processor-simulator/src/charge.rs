//! A charge, as every processor receives it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Declined by every processor, as by most sandboxes.
pub const DECLINED_NUMBER: &str = "4000000000000002";

/// The card and amount of one charge.
#[derive(Clone, PartialEq, Eq)]
pub struct Charge {
    pub processor: &'static str,
    pub number: String,
    pub expiration_month: u8,
    pub expiration_year: u16,
    pub security_code: Option<String>,
    /// In minor units.
    pub amount: u64,
    /// Three lower-case letters.
    pub currency: String,
}

/// Prints no card data.
impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge")
            .field("processor", &self.processor)
            .field("amount", &self.amount)
            .field("currency", &self.currency)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Approved,
    Declined,
    /// The number fails the Luhn check or has a wrong length.
    InvalidNumber,
}

impl Charge {
    pub fn outcome(&self) -> Outcome {
        match self.number.as_str() {
            number if !is_card_number(number) => Outcome::InvalidNumber,
            DECLINED_NUMBER => Outcome::Declined,
            _ => Outcome::Approved,
        }
    }

    pub(crate) fn bin(&self) -> &str {
        self.number.get(..6).unwrap_or_default()
    }

    pub(crate) fn last4(&self) -> &str {
        let start = self.number.len().saturating_sub(4);
        self.number.get(start..).unwrap_or_default()
    }
}

/// The charges that all processors have received, in order.
#[derive(Clone, Default)]
pub struct Charges(Arc<Mutex<Vec<Charge>>>);

impl Charges {
    /// Records a charge and returns its number, from 1.
    pub(crate) fn record(&self, charge: &Charge) -> usize {
        let mut charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        charges.push(charge.clone());
        charges.len()
    }

    pub fn all(&self) -> Vec<Charge> {
        let charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        charges.clone()
    }
}

/// The string at a JSON pointer, which must be text.
pub(crate) fn text<'a>(body: &'a Value, pointer: &str) -> Option<&'a str> {
    body.pointer(pointer).and_then(Value::as_str)
}

fn is_card_number(number: &str) -> bool {
    let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let digits = number.bytes().rev().map(|byte| u32::from(byte) & 0x0f);
    let sum: u32 = digits
        .enumerate()
        .map(|(index, digit)| match index % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    (13..=19).contains(&number.len()) && is_digits && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_have_13_to_19_digits_and_pass_the_luhn_check() {
        assert!(is_card_number("4242424242424242"));
        assert!(is_card_number("378282246310005"));
        assert!(!is_card_number("4242424242424241"));
        assert!(!is_card_number("42424242 4242 4242"));
        assert!(!is_card_number("0000000000"));
        assert!(!is_card_number(""));
    }
}
