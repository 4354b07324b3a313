//! Filters between types: defaults, JSON, and the parts of it.

use serde_json::{Number, Value};

use super::{Applied, Filter, Given, Mark, NOTHING};
use crate::EvaluationError;
use crate::json_path::JsonPath;
use crate::number::number_from_text;

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("default", 0..=1, "up to a value", default),
    Filter::new("json", 1..=1, "a path", json).marked(Mark::Path),
    Filter::new("json_stringify", 0..=0, NOTHING, stringify).marked(Mark::Last),
    Filter::new("stringify", 0..=0, NOTHING, stringify),
    Filter::new("to_boolean", 0..=0, NOTHING, to_boolean),
    Filter::new("to_number", 0..=0, NOTHING, to_number),
    Filter::new("to_string", 0..=0, NOTHING, to_string),
];

/// Takes the place of null, false and what is empty.
fn default(given: &Given<'_>) -> Applied {
    let is_missing = match given.input {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    Ok(match is_missing {
        true => given.value(0).cloned().unwrap_or_else(|| "".into()),
        false => given.input.clone(),
    })
}

/// The one value at a JSON path.
fn json(given: &Given<'_>) -> Applied {
    let path = given.argument(0)?;
    let path = JsonPath::parse(&path).ok_or(EvaluationError::BadPath(given.filter))?;
    if !given.input.is_array() && !given.input.is_object() {
        return Ok(Value::Null);
    }
    let matches = path.find(given.input, &|| given.spend_elements(1))?;
    match matches[..] {
        [] => Ok(Value::Null),
        [one] => Ok(one.clone()),
        _ => Err(EvaluationError::ManyMatches(given.filter)),
    }
}

/// Compact JSON, except that text stays as it is.
fn stringify(given: &Given<'_>) -> Applied {
    Ok(match given.input {
        Value::Null => Value::Null,
        Value::String(text) => text.as_str().into(),
        value => value.to_string().into(),
    })
}

fn to_string(given: &Given<'_>) -> Applied {
    given.null_or(|text| Ok(text.to_owned()))
}

/// Numbers in text keep the way they are written.
fn to_number(given: &Given<'_>) -> Applied {
    let number = match given.input {
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
        .ok_or(EvaluationError::NotNumber(given.filter))
}

fn to_boolean(given: &Given<'_>) -> Applied {
    match given.input {
        Value::Null => Ok(Value::Null),
        Value::Bool(flag) => Ok((*flag).into()),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true.into()),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false.into()),
        _ => Err(EvaluationError::NotBoolean(given.filter)),
    }
}
