//! Filters that take a text or a list apart.

use serde_json::{Value, json};

use super::{Applied, Filter, Given, NOTHING};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("slice", 1..=2, "a start and optionally a length", slice),
    Filter::new("split", 1..=1, "a separator", split),
    Filter::new("size", 0..=0, NOTHING, size),
    Filter::new("first", 0..=0, NOTHING, first),
    Filter::new("last", 0..=0, NOTHING, last),
];

/// A part of a text or list; a negative start counts from the end.
fn slice(given: &Given<'_>) -> Applied {
    let start = given.integer(0)?.unwrap_or(0);
    let length = given.integer(1)?.unwrap_or(1);
    if let Value::Array(_) = given.input {
        let list = given.list()?;
        let (start, length) = range(list.len(), start, length);
        return Ok(list.iter().skip(start).take(length).cloned().collect());
    }
    let text = given.text_or_empty()?;
    let (start, length) = range(text.chars().count(), start, length);
    let part: String = text.chars().skip(start).take(length).collect();
    Ok(part.into())
}

/// What is outside yields nothing.
fn range(size: usize, start: i64, length: i64) -> (usize, usize) {
    let distance = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let start = match start {
        0.. => Some(distance),
        _ => size.checked_sub(distance),
    };
    let length = usize::try_from(length).unwrap_or(0);
    start.map_or((0, 0), |start| (start, length))
}

/// Empty parts at the end are left out. A separator of one space splits at any whitespace.
fn split(given: &Given<'_>) -> Applied {
    let (text, separator) = (given.text_or_empty()?, given.argument(0)?);
    let mut parts: Vec<Value> = Vec::new();
    let mut push = |part: &str| {
        given.spend_elements(1)?;
        parts.push(part.into());
        Ok(())
    };
    match &*separator {
        "" => (text.chars()).try_for_each(|character| push(character.encode_utf8(&mut [0; 4])))?,
        " " => text.split_whitespace().try_for_each(push)?,
        separator => text.split(separator).try_for_each(push)?,
    }
    while parts.last().is_some_and(|part| part == "") {
        parts.pop();
    }
    Ok(parts.into())
}

fn size(given: &Given<'_>) -> Applied {
    Ok(match given.input {
        Value::Array(list) => list.len().into(),
        Value::Object(object) => object.len().into(),
        Value::String(text) => text.chars().count().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0.into(),
    })
}

fn first(given: &Given<'_>) -> Applied {
    Ok(match given.input {
        Value::Array(list) => list.first().cloned().unwrap_or_default(),
        Value::Object(object) => {
            let first = object.iter().next();
            first.map_or(Value::Null, |(name, value)| json!([name, value]))
        }
        _ => Value::Null,
    })
}

fn last(given: &Given<'_>) -> Applied {
    Ok(match given.input {
        Value::Array(list) => list.last().cloned().unwrap_or_default(),
        _ => Value::Null,
    })
}
