//! Filters on numbers. Integers stay integers, and decimals keep their places.

use super::{Applied, Filter, Given, NOTHING};
use crate::EvaluationError;
use crate::number::Decimal;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("abs", 0..=0, NOTHING, abs),
    Filter::new("ceil", 0..=0, NOTHING, ceil),
    Filter::new("floor", 0..=0, NOTHING, floor),
    Filter::new("round", 0..=1, "up to a number of places", round),
    Filter::new("plus", 1..=1, "a number", plus),
    Filter::new("minus", 1..=1, "a number", minus),
    Filter::new("times", 1..=1, "a number", times),
    Filter::new("divided_by", 1..=1, "a number", divided_by),
    Filter::new("modulo", 1..=1, "a number", modulo),
    Filter::new("at_least", 1..=1, "a number", at_least),
    Filter::new("at_most", 1..=1, "a number", at_most),
];

/// Places beyond that change nothing.
const PLACES_MAX: usize = 30;

fn abs(given: &Given<'_>) -> Applied {
    result(given, given.to_number(given.input)?.abs())
}

fn ceil(given: &Given<'_>) -> Applied {
    result(given, given.to_number(given.input)?.ceil())
}

fn floor(given: &Given<'_>) -> Applied {
    result(given, given.to_number(given.input)?.floor())
}

fn round(given: &Given<'_>) -> Applied {
    let places = given.count(0, 0)?.min(PLACES_MAX);
    let number = given.to_number(given.input)?;
    result(given, number.round(places as u32))
}

fn plus(given: &Given<'_>) -> Applied {
    two(given, Decimal::plus)
}

fn minus(given: &Given<'_>) -> Applied {
    two(given, Decimal::minus)
}

fn times(given: &Given<'_>) -> Applied {
    two(given, Decimal::times)
}

fn divided_by(given: &Given<'_>) -> Applied {
    check_divisor(given)?;
    two(given, Decimal::divided_by)
}

fn modulo(given: &Given<'_>) -> Applied {
    check_divisor(given)?;
    two(given, Decimal::modulo)
}

fn at_least(given: &Given<'_>) -> Applied {
    two(given, |number, least| {
        let is_less = number.compare(least)?.is_lt();
        Some(if is_less { least } else { number })
    })
}

fn at_most(given: &Given<'_>) -> Applied {
    two(given, |number, most| {
        let is_more = number.compare(most)?.is_gt();
        Some(if is_more { most } else { number })
    })
}

fn two(given: &Given<'_>, apply: impl Fn(Decimal, Decimal) -> Option<Decimal>) -> Applied {
    let number = given.to_number(given.input)?;
    result(given, apply(number, given.number(0)?))
}

fn check_divisor(given: &Given<'_>) -> Result<(), EvaluationError> {
    match given.number(0)?.is_zero() {
        true => Err(EvaluationError::DivisionByZero(given.filter)),
        false => Ok(()),
    }
}

fn result(given: &Given<'_>, number: Option<Decimal>) -> Applied {
    number
        .and_then(Decimal::to_value)
        .ok_or(EvaluationError::NumberTooLarge(given.filter))
}
