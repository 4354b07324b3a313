//! Filters that return parts of a text or a list.

use serde_json::{Value, json};

use super::{Filter, FilterArgs, FilterResult, NO_ARGUMENTS};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("slice", 1..=2, "a start and optionally a length", slice),
    Filter::new("split", 1..=1, "a separator", split),
    Filter::new("size", 0..=0, NO_ARGUMENTS, size),
    Filter::new("first", 0..=0, NO_ARGUMENTS, first),
    Filter::new("last", 0..=0, NO_ARGUMENTS, last),
];

/// A substring or sublist; a negative start counts from the end.
fn slice(args: &FilterArgs<'_>) -> FilterResult {
    let start = args.integer(0)?.unwrap_or(0);
    let length = args.integer(1)?.unwrap_or(1);
    if let Value::Array(_) = args.input {
        let list = args.list()?;
        let (start, length) = range(list.len(), start, length);
        return Ok(list.iter().skip(start).take(length).cloned().collect());
    }
    let text = args.text_or_empty()?;
    let (start, length) = range(text.chars().count(), start, length);
    let part: String = text.chars().skip(start).take(length).collect();
    Ok(part.into())
}

/// A range outside of the value is empty.
fn range(size: usize, start: i64, length: i64) -> (usize, usize) {
    let distance = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let start = match start {
        0.. => Some(distance),
        _ => size.checked_sub(distance),
    };
    let length = usize::try_from(length).unwrap_or(0);
    start.map_or((0, 0), |start| (start, length))
}

/// Trailing empty parts are omitted. A single space as separator splits at any whitespace.
fn split(args: &FilterArgs<'_>) -> FilterResult {
    let (text, separator) = (args.text_or_empty()?, args.argument(0)?);
    let mut parts: Vec<Value> = Vec::new();
    let mut push = |part: &str| {
        args.charge_elements(1)?;
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

fn size(args: &FilterArgs<'_>) -> FilterResult {
    Ok(match args.input {
        Value::Array(list) => list.len().into(),
        Value::Object(object) => object.len().into(),
        Value::String(text) => text.chars().count().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0.into(),
    })
}

fn first(args: &FilterArgs<'_>) -> FilterResult {
    Ok(match args.input {
        Value::Array(list) => list.first().cloned().unwrap_or_default(),
        Value::Object(object) => {
            let first = object.iter().next();
            first.map_or(Value::Null, |(name, value)| json!([name, value]))
        }
        _ => Value::Null,
    })
}

fn last(args: &FilterArgs<'_>) -> FilterResult {
    Ok(match args.input {
        Value::Array(list) => list.last().cloned().unwrap_or_default(),
        _ => Value::Null,
    })
}
