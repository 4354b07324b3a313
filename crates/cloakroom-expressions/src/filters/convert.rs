//! Filters that convert between types, and JSON paths.

use serde_json::{Number, Value};

use super::{Filter, FilterArgs, FilterResult, Kind, NO_ARGUMENTS};
use crate::EvaluationError;
use crate::json_path::JsonPath;
use crate::number::number_from_text;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("default", 0..=1, "up to a value", default),
    Filter::new("json", 1..=1, "a path", json).with_kind(Kind::Path),
    Filter::new("json_stringify", 0..=0, NO_ARGUMENTS, stringify).with_kind(Kind::Last),
    Filter::new("stringify", 0..=0, NO_ARGUMENTS, stringify),
    Filter::new("to_boolean", 0..=0, NO_ARGUMENTS, to_boolean),
    Filter::new("to_number", 0..=0, NO_ARGUMENTS, to_number),
    Filter::new("to_string", 0..=0, NO_ARGUMENTS, to_string),
];

/// Replaces null, false and empty values.
fn default(args: &FilterArgs<'_>) -> FilterResult {
    let is_missing = match args.input {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    Ok(match is_missing {
        true => args.value(0).cloned().unwrap_or_else(|| "".into()),
        false => args.input.clone(),
    })
}

/// The value at a JSON path, which must have at most one match.
fn json(args: &FilterArgs<'_>) -> FilterResult {
    let path = args.argument(0)?;
    let path = JsonPath::parse(&path).ok_or(EvaluationError::BadPath(args.filter))?;
    if !args.input.is_array() && !args.input.is_object() {
        return Ok(Value::Null);
    }
    let matches = path.find(args.input, &|| args.charge_elements(1))?;
    match matches[..] {
        [] => Ok(Value::Null),
        [one] => Ok(one.clone()),
        _ => Err(EvaluationError::ManyMatches(args.filter)),
    }
}

/// Compact JSON; text is returned unchanged.
fn stringify(args: &FilterArgs<'_>) -> FilterResult {
    Ok(match args.input {
        Value::Null => Value::Null,
        Value::String(text) => text.as_str().into(),
        value => value.to_string().into(),
    })
}

fn to_string(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| Ok(text.to_owned()))
}

/// Numbers in text preserve their notation.
fn to_number(args: &FilterArgs<'_>) -> FilterResult {
    let number = match args.input {
        Value::Null => return Ok(Value::Null),
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => {
            let text = text.trim();
            let is_plain = text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
            let parsed = text.parse::<Number>().ok();
            parsed.or_else(|| number_from_text(text).filter(|_| is_plain))
        }
        _ => None,
    };
    number
        .map(Value::Number)
        .ok_or(EvaluationError::NotNumber(args.filter))
}

fn to_boolean(args: &FilterArgs<'_>) -> FilterResult {
    match args.input {
        Value::Null => Ok(Value::Null),
        Value::Bool(flag) => Ok((*flag).into()),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        _ => Err(EvaluationError::NotBoolean(args.filter)),
    }
}
