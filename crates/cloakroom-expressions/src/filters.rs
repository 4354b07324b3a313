//! The filters: their names, arguments and effect. A new filter is a row in `FILTERS`.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::EvaluationError;

/// What is known about a filter before it runs.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) arguments: RangeInclusive<usize>,
    /// The arguments in words, for whoever gave the wrong ones.
    pub(crate) expected: &'static str,
    /// Whether nothing may follow.
    pub(crate) is_last: bool,
    apply: fn(&Value, &Arguments) -> Result<Value, EvaluationError>,
}

const FILTERS: &[Filter] = &[
    Filter {
        name: "json_stringify",
        arguments: 0..=0,
        expected: "no arguments",
        is_last: true,
        apply: stringify,
    },
    Filter {
        name: "last4",
        arguments: 0..=0,
        expected: "no arguments",
        is_last: false,
        apply: last4,
    },
    Filter {
        name: "reveal",
        arguments: 0..=4,
        expected: "up to a first and a last count, a mask character and characters to preserve",
        is_last: false,
        apply: reveal,
    },
    Filter {
        name: "reveal_last",
        arguments: 1..=2,
        expected: "a count and optionally a mask character",
        is_last: false,
        apply: reveal_last,
    },
    Filter {
        name: "stringify",
        arguments: 0..=0,
        expected: "no arguments",
        is_last: false,
        apply: stringify,
    },
    Filter {
        name: "to_string",
        arguments: 0..=0,
        expected: "no arguments",
        is_last: false,
        apply: to_string,
    },
];

impl Filter {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FILTERS.iter().find(|filter| filter.name == name)
    }

    pub(crate) fn apply(
        &self,
        input: &Value,
        values: Vec<Value>,
    ) -> Result<Value, EvaluationError> {
        let arguments = Arguments {
            filter: self.name,
            values,
        };
        (self.apply)(input, &arguments)
    }
}

/// What a filter was given, in order.
struct Arguments {
    filter: &'static str,
    values: Vec<Value>,
}

impl Arguments {
    /// A number of characters; numeric text counts as a number.
    fn count(&self, position: usize, default: usize) -> Result<usize, EvaluationError> {
        let count = match self.values.get(position) {
            None => return Ok(default),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or(EvaluationError::BadArgument(self.filter))
    }

    fn character(&self, position: usize, default: char) -> Result<char, EvaluationError> {
        let Some(value) = self.values.get(position) else {
            return Ok(default);
        };
        let text = text(value).unwrap_or_default();
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(EvaluationError::BadArgument(self.filter)),
        }
    }

    fn text(&self, position: usize) -> Result<String, EvaluationError> {
        match self.values.get(position) {
            None => Ok(String::new()),
            Some(value) => text(value).ok_or(EvaluationError::BadArgument(self.filter)),
        }
    }

    /// The characters of the input, or None for null, which most filters pass on.
    fn input(&self, input: &Value) -> Result<Option<Vec<char>>, EvaluationError> {
        if input.is_null() {
            return Ok(None);
        }
        match text(input) {
            Some(text) => Ok(Some(text.chars().collect())),
            None => Err(EvaluationError::NotText(self.filter)),
        }
    }
}

/// The text of a scalar; null, lists and objects have none.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(boolean) => Some(boolean.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn last4(input: &Value, arguments: &Arguments) -> Result<Value, EvaluationError> {
    let Some(characters) = arguments.input(input)? else {
        return Ok(Value::Null);
    };
    let start = characters.len().saturating_sub(4);
    Ok(String::from_iter(&characters[start..]).into())
}

/// Masks what lies between the revealed ends, or everything if that would mask nothing.
fn reveal(input: &Value, arguments: &Arguments) -> Result<Value, EvaluationError> {
    let (first, last) = (arguments.count(0, 0)?, arguments.count(1, 0)?);
    let mask = arguments.character(2, 'X')?;
    let preserved = arguments.text(3)?;
    let Some(characters) = arguments.input(input)? else {
        return Ok(Value::Null);
    };

    let masked = |first: usize, last: usize| -> Vec<char> {
        let end = characters.len().saturating_sub(last);
        let shown = |position| position < first || end <= position;
        let show = |(position, character): (usize, &char)| {
            let kept = shown(position) || preserved.contains(*character);
            if kept { *character } else { mask }
        };
        characters.iter().enumerate().map(show).collect()
    };
    let partly = masked(first, last);
    // Also the case of a value no longer than its two ends.
    let hides_nothing = partly == characters;
    let result = if hides_nothing { masked(0, 0) } else { partly };
    Ok(String::from_iter(result).into())
}

/// Masks all but the end. Hyphens stay, and a value no longer than the end is shown whole.
fn reveal_last(input: &Value, arguments: &Arguments) -> Result<Value, EvaluationError> {
    let (last, mask) = (arguments.count(0, 0)?, arguments.character(1, 'X')?);
    let Some(characters) = arguments.input(input)? else {
        return Ok(Value::Null);
    };
    let end = characters.len().saturating_sub(last);
    let show = |(position, character): (usize, &char)| {
        let kept = end <= position || *character == '-';
        if kept { *character } else { mask }
    };
    let result: String = characters.iter().enumerate().map(show).collect();
    Ok(result.into())
}

/// Compact JSON, except that text stays as it is.
fn stringify(input: &Value, _: &Arguments) -> Result<Value, EvaluationError> {
    Ok(match input {
        Value::Null => Value::Null,
        Value::String(text) => text.as_str().into(),
        value => value.to_string().into(),
    })
}

fn to_string(input: &Value, arguments: &Arguments) -> Result<Value, EvaluationError> {
    let characters = arguments.input(input)?;
    Ok(characters.map_or(Value::Null, |text| String::from_iter(text).into()))
}
