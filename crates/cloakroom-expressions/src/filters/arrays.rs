//! Filters on lists.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use super::args::text;
use super::{Filter, FilterArgs, FilterResult, NO_ARGUMENTS};
use crate::EvaluationError;
use crate::condition::{equal, is_true};
use crate::number::Decimal;
use crate::render::push;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("join", 0..=1, "up to a separator", join),
    Filter::new("concat", 1..=1, "a list", concat),
    Filter::new("reverse", 0..=0, NO_ARGUMENTS, reverse),
    Filter::new("sort", 0..=1, "up to a member name", sort),
    Filter::new("sort_natural", 0..=1, "up to a member name", sort_natural),
    Filter::new("uniq", 0..=1, "up to a member name", uniq),
    Filter::new("compact", 0..=1, "up to a member name", compact),
    Filter::new("map", 1..=1, "a member name", map),
    Filter::new(
        "where",
        1..=2,
        "a member name and optionally a value",
        where_filter,
    ),
    Filter::new(
        "reject",
        1..=2,
        "a member name and optionally a value",
        reject,
    ),
    Filter::new("find", 1..=2, "a member name and optionally a value", find),
    Filter::new("has", 1..=2, "a member name and optionally a value", has),
    Filter::new("sum", 0..=1, "up to a member name", sum),
];

const MISSING: &Value = &Value::Null;

fn join(args: &FilterArgs<'_>) -> FilterResult {
    let separator = if args.has(0) {
        args.argument(0)?
    } else {
        " ".into()
    };
    let list = args.list()?;
    args.charge(list.len().saturating_mul(separator.len()))?;
    let mut joined = String::new();
    for (position, element) in list.iter().enumerate() {
        if position > 0 {
            joined.push_str(&separator);
        }
        push(&mut joined, element);
    }
    Ok(joined.into())
}

fn concat(args: &FilterArgs<'_>) -> FilterResult {
    let Some(Value::Array(more)) = args.value(0) else {
        return Err(args.bad_argument());
    };
    args.charge_elements(more.len())?;
    Ok(args.list()?.iter().chain(more).cloned().collect())
}

fn reverse(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.list()?.iter().rev().cloned().collect())
}

/// Sort key of an element; nulls sort last.
enum SortKey {
    Number(Decimal),
    Text(String),
    Null,
}

fn sort(args: &FilterArgs<'_>) -> FilterResult {
    sort_by(args, |value| match value {
        Value::Null => Ok(SortKey::Null),
        Value::String(text) => Ok(SortKey::Text(text.clone())),
        Value::Number(_) => args.to_number(value).map(SortKey::Number),
        _ => Err(EvaluationError::NotComparable),
    })
}

/// Case-insensitive.
fn sort_natural(args: &FilterArgs<'_>) -> FilterResult {
    sort_by(args, |value| match (value, text(value)) {
        (Value::Null, _) => Ok(SortKey::Null),
        (_, Some(text)) => Ok(SortKey::Text(text.to_lowercase())),
        (_, None) => Err(EvaluationError::NotComparable),
    })
}

fn sort_by(
    args: &FilterArgs<'_>,
    key: impl Fn(&Value) -> Result<SortKey, EvaluationError>,
) -> FilterResult {
    let mut keyed = Vec::new();
    for element in args.list()? {
        keyed.push((key(property(args, element)?)?, element));
    }
    let mut is_mixed = false;
    keyed.sort_by(|(left, _), (right, _)| match (left, right) {
        (SortKey::Text(left), SortKey::Text(right)) => left.cmp(right),
        (SortKey::Number(left), SortKey::Number(right)) => {
            left.compare(*right).unwrap_or(Ordering::Equal)
        }
        (SortKey::Null, SortKey::Null) => Ordering::Equal,
        (SortKey::Null, _) => Ordering::Greater,
        (_, SortKey::Null) => Ordering::Less,
        // Sorting requires a total order even for a mixed list, which is rejected below.
        (SortKey::Text(_), SortKey::Number(_)) => {
            is_mixed = true;
            Ordering::Greater
        }
        (SortKey::Number(_), SortKey::Text(_)) => {
            is_mixed = true;
            Ordering::Less
        }
    });
    if is_mixed {
        return Err(EvaluationError::NotComparable);
    }
    Ok(keyed
        .into_iter()
        .map(|(_, element)| element.clone())
        .collect())
}

fn uniq(args: &FilterArgs<'_>) -> FilterResult {
    let mut seen = HashSet::new();
    let mut selected = Vec::new();
    for element in args.list()? {
        if seen.insert(property(args, element)?.to_string()) {
            selected.push(element.clone());
        }
    }
    Ok(selected.into())
}

fn compact(args: &FilterArgs<'_>) -> FilterResult {
    let mut selected = Vec::new();
    for element in args.list()? {
        if !property(args, element)?.is_null() {
            selected.push(element.clone());
        }
    }
    Ok(selected.into())
}

fn map(args: &FilterArgs<'_>) -> FilterResult {
    let list = args.list()?.iter();
    list.map(|element| property(args, element).cloned())
        .collect()
}

fn where_filter(args: &FilterArgs<'_>) -> FilterResult {
    let mut selected = Vec::new();
    for element in args.list()? {
        if matches(args, element)? {
            selected.push(element.clone());
        }
    }
    Ok(selected.into())
}

fn reject(args: &FilterArgs<'_>) -> FilterResult {
    let mut selected = Vec::new();
    for element in args.list()? {
        if !matches(args, element)? {
            selected.push(element.clone());
        }
    }
    Ok(selected.into())
}

fn find(args: &FilterArgs<'_>) -> FilterResult {
    for element in args.list()? {
        if matches(args, element)? {
            return Ok(element.clone());
        }
    }
    Ok(Value::Null)
}

fn has(args: &FilterArgs<'_>) -> FilterResult {
    for element in args.list()? {
        if matches(args, element)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn sum(args: &FilterArgs<'_>) -> FilterResult {
    let mut total = Decimal::ZERO;
    for element in args.list()? {
        let number = args.to_number(property(args, element)?)?;
        total = total
            .plus(number)
            .ok_or(EvaluationError::NumberTooLarge(args.filter))?;
    }
    total
        .to_value()
        .ok_or(EvaluationError::NumberTooLarge(args.filter))
}

/// Whether the member equals the second argument or, without one, is truthy.
fn matches(args: &FilterArgs<'_>, element: &Value) -> Result<bool, EvaluationError> {
    let member = property(args, element)?;
    Ok(match args.value(1) {
        Some(expected) => equal(member, expected),
        None => is_true(member),
    })
}

/// The member named by the first argument, or the element itself if there is no argument.
fn property<'v>(args: &FilterArgs<'_>, element: &'v Value) -> Result<&'v Value, EvaluationError> {
    if !args.has(0) {
        return Ok(element);
    }
    let name = args.argument(0)?;
    Ok(element.get(&*name).unwrap_or(MISSING))
}
