//! Filters on lists.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use super::given::text;
use super::{Applied, Filter, Given, NOTHING};
use crate::EvaluationError;
use crate::condition::{equal, is_true};
use crate::number::Decimal;
use crate::render::push;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("join", 0..=1, "up to a separator", join),
    Filter::new("concat", 1..=1, "a list", concat),
    Filter::new("reverse", 0..=0, NOTHING, reverse),
    Filter::new("sort", 0..=1, "up to a member name", sort),
    Filter::new("sort_natural", 0..=1, "up to a member name", sort_natural),
    Filter::new("uniq", 0..=1, "up to a member name", uniq),
    Filter::new("compact", 0..=1, "up to a member name", compact),
    Filter::new("map", 1..=1, "a member name", map),
    Filter::new(
        "where",
        1..=2,
        "a member name and optionally a value",
        only_where,
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

fn join(given: &Given<'_>) -> Applied {
    let separator = if given.has(0) {
        given.argument(0)?
    } else {
        " ".into()
    };
    let list = given.list()?;
    given.spend(list.len().saturating_mul(separator.len()))?;
    let mut joined = String::new();
    for (position, element) in list.iter().enumerate() {
        if position > 0 {
            joined.push_str(&separator);
        }
        push(&mut joined, element);
    }
    Ok(joined.into())
}

fn concat(given: &Given<'_>) -> Applied {
    let Some(Value::Array(more)) = given.value(0) else {
        return Err(given.bad_argument());
    };
    given.spend_elements(more.len())?;
    Ok(given.list()?.iter().chain(more).cloned().collect())
}

fn reverse(given: &Given<'_>) -> Applied {
    Ok(given.list()?.iter().rev().cloned().collect())
}

/// What an element is sorted by; nothing comes last.
enum Key {
    Number(Decimal),
    Text(String),
    Nothing,
}

fn sort(given: &Given<'_>) -> Applied {
    sort_by(given, |value| match value {
        Value::Null => Ok(Key::Nothing),
        Value::String(text) => Ok(Key::Text(text.clone())),
        Value::Number(_) => given.to_number(value).map(Key::Number),
        _ => Err(EvaluationError::NotComparable),
    })
}

/// Without regard to case.
fn sort_natural(given: &Given<'_>) -> Applied {
    sort_by(given, |value| match (value, text(value)) {
        (Value::Null, _) => Ok(Key::Nothing),
        (_, Some(text)) => Ok(Key::Text(text.to_lowercase())),
        (_, None) => Err(EvaluationError::NotComparable),
    })
}

fn sort_by(given: &Given<'_>, key: impl Fn(&Value) -> Result<Key, EvaluationError>) -> Applied {
    let mut keyed = Vec::new();
    for element in given.list()? {
        keyed.push((key(property(given, element)?)?, element));
    }
    let mut is_mixed = false;
    keyed.sort_by(|(left, _), (right, _)| match (left, right) {
        (Key::Text(left), Key::Text(right)) => left.cmp(right),
        (Key::Number(left), Key::Number(right)) => left.compare(*right).unwrap_or(Ordering::Equal),
        (Key::Nothing, Key::Nothing) => Ordering::Equal,
        (Key::Nothing, _) => Ordering::Greater,
        (_, Key::Nothing) => Ordering::Less,
        // Kept in a total order all the same, which sorting relies on.
        (Key::Text(_), Key::Number(_)) => {
            is_mixed = true;
            Ordering::Greater
        }
        (Key::Number(_), Key::Text(_)) => {
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

fn uniq(given: &Given<'_>) -> Applied {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for element in given.list()? {
        if seen.insert(property(given, element)?.to_string()) {
            kept.push(element.clone());
        }
    }
    Ok(kept.into())
}

fn compact(given: &Given<'_>) -> Applied {
    let mut kept = Vec::new();
    for element in given.list()? {
        if !property(given, element)?.is_null() {
            kept.push(element.clone());
        }
    }
    Ok(kept.into())
}

fn map(given: &Given<'_>) -> Applied {
    let list = given.list()?.iter();
    list.map(|element| property(given, element).cloned())
        .collect()
}

fn only_where(given: &Given<'_>) -> Applied {
    let mut kept = Vec::new();
    for element in given.list()? {
        if matches(given, element)? {
            kept.push(element.clone());
        }
    }
    Ok(kept.into())
}

fn reject(given: &Given<'_>) -> Applied {
    let mut kept = Vec::new();
    for element in given.list()? {
        if !matches(given, element)? {
            kept.push(element.clone());
        }
    }
    Ok(kept.into())
}

fn find(given: &Given<'_>) -> Applied {
    for element in given.list()? {
        if matches(given, element)? {
            return Ok(element.clone());
        }
    }
    Ok(Value::Null)
}

fn has(given: &Given<'_>) -> Applied {
    for element in given.list()? {
        if matches(given, element)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn sum(given: &Given<'_>) -> Applied {
    let mut total = Decimal::ZERO;
    for element in given.list()? {
        let number = given.to_number(property(given, element)?)?;
        total = total
            .plus(number)
            .ok_or(EvaluationError::NumberTooLarge(given.filter))?;
    }
    total
        .to_value()
        .ok_or(EvaluationError::NumberTooLarge(given.filter))
}

/// Whether the named member equals the second argument, or is true if there is none.
fn matches(given: &Given<'_>, element: &Value) -> Result<bool, EvaluationError> {
    let member = property(given, element)?;
    Ok(match given.value(1) {
        Some(expected) => equal(member, expected),
        None => is_true(member),
    })
}

/// The member that the first argument names, or the element itself without one.
fn property<'v>(given: &Given<'_>, element: &'v Value) -> Result<&'v Value, EvaluationError> {
    if !given.has(0) {
        return Ok(element);
    }
    let name = given.argument(0)?;
    Ok(element.get(&*name).unwrap_or(MISSING))
}
