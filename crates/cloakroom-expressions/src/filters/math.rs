//! Filters on numbers. Integers stay integers; decimals preserve their places.

use super::{Filter, FilterArgs, FilterResult, NO_ARGUMENTS};
use crate::EvaluationError;
use crate::number::Decimal;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("abs", 0..=0, NO_ARGUMENTS, abs),
    Filter::new("ceil", 0..=0, NO_ARGUMENTS, ceil),
    Filter::new("floor", 0..=0, NO_ARGUMENTS, floor),
    Filter::new("round", 0..=1, "up to a number of places", round),
    Filter::new("plus", 1..=1, "a number", plus),
    Filter::new("minus", 1..=1, "a number", minus),
    Filter::new("times", 1..=1, "a number", times),
    Filter::new("divided_by", 1..=1, "a number", divided_by),
    Filter::new("modulo", 1..=1, "a number", modulo),
    Filter::new("at_least", 1..=1, "a number", at_least),
    Filter::new("at_most", 1..=1, "a number", at_most),
];

/// More places have no effect.
const PLACES_MAX: usize = 30;

fn abs(args: &FilterArgs<'_>) -> FilterResult {
    result(args, args.to_number(args.input)?.abs())
}

fn ceil(args: &FilterArgs<'_>) -> FilterResult {
    result(args, args.to_number(args.input)?.ceil())
}

fn floor(args: &FilterArgs<'_>) -> FilterResult {
    result(args, args.to_number(args.input)?.floor())
}

fn round(args: &FilterArgs<'_>) -> FilterResult {
    let places = args.count(0, 0)?.min(PLACES_MAX);
    let number = args.to_number(args.input)?;
    result(args, number.round(places as u32))
}

fn plus(args: &FilterArgs<'_>) -> FilterResult {
    binary(args, Decimal::plus)
}

fn minus(args: &FilterArgs<'_>) -> FilterResult {
    binary(args, Decimal::minus)
}

fn times(args: &FilterArgs<'_>) -> FilterResult {
    binary(args, Decimal::times)
}

fn divided_by(args: &FilterArgs<'_>) -> FilterResult {
    check_divisor(args)?;
    binary(args, Decimal::divided_by)
}

fn modulo(args: &FilterArgs<'_>) -> FilterResult {
    check_divisor(args)?;
    binary(args, Decimal::modulo)
}

fn at_least(args: &FilterArgs<'_>) -> FilterResult {
    binary(args, |number, least| {
        let is_less = number.compare(least)?.is_lt();
        Some(if is_less { least } else { number })
    })
}

fn at_most(args: &FilterArgs<'_>) -> FilterResult {
    binary(args, |number, most| {
        let is_more = number.compare(most)?.is_gt();
        Some(if is_more { most } else { number })
    })
}

fn binary(
    args: &FilterArgs<'_>,
    apply: impl Fn(Decimal, Decimal) -> Option<Decimal>,
) -> FilterResult {
    let number = args.to_number(args.input)?;
    result(args, apply(number, args.number(0)?))
}

fn check_divisor(args: &FilterArgs<'_>) -> Result<(), EvaluationError> {
    match args.number(0)?.is_zero() {
        true => Err(EvaluationError::DivisionByZero(args.filter)),
        false => Ok(()),
    }
}

fn result(args: &FilterArgs<'_>, number: Option<Decimal>) -> FilterResult {
    number
        .and_then(Decimal::to_value)
        .ok_or(EvaluationError::NumberTooLarge(args.filter))
}
