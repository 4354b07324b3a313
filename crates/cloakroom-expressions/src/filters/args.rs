//! `FilterArgs`: typed access to a filter's input and arguments.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::Value;

use super::FilterResult;
use crate::number::Decimal;
use crate::{EvaluationError, Sources, WORK_BYTES_MAX};

/// Cost of one list element, in bytes of work.
const ELEMENT_BYTES: usize = 32;

/// The input and arguments of a filter, and its external sources.
pub(crate) struct FilterArgs<'a> {
    pub(super) filter: &'static str,
    pub(super) input: &'a Value,
    pub(super) sources: &'a Sources<'a>,
    pub(super) is_bytes: bool,
    values: Vec<Value>,
    charged: Cell<usize>,
}

impl<'a> FilterArgs<'a> {
    pub(crate) fn new(
        filter: &'static str,
        input: &'a Value,
        values: Vec<Value>,
        sources: &'a Sources<'a>,
    ) -> Self {
        Self {
            filter,
            input,
            sources,
            is_bytes: false,
            values,
            charged: Cell::new(0),
        }
    }

    /// `is_bytes`: the input is a list of bytes, one number each.
    pub(crate) fn with_bytes(self, is_bytes: bool) -> Self {
        Self { is_bytes, ..self }
    }

    /// Bytes of work beyond reading the input and the arguments once.
    pub(crate) fn charged(&self) -> usize {
        self.charged.get()
    }

    /// Charges for work before it is done, so that an oversized result is never allocated.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), EvaluationError> {
        let charged = self.charged.get().saturating_add(bytes);
        self.charged.set(charged);
        match charged > WORK_BYTES_MAX {
            true => Err(EvaluationError::TooMuchWork),
            false => Ok(()),
        }
    }

    pub(super) fn charge_elements(&self, count: usize) -> Result<(), EvaluationError> {
        self.charge(count.saturating_mul(ELEMENT_BYTES))
    }

    pub(super) fn bad_argument(&self) -> EvaluationError {
        EvaluationError::BadArgument(self.filter)
    }

    /// An argument, unless it is missing or null.
    pub(super) fn value(&self, position: usize) -> Option<&Value> {
        self.values.get(position).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, position: usize) -> bool {
        position < self.values.len()
    }

    /// A non-negative integer; numeric text is accepted.
    pub(super) fn count(&self, position: usize, default: usize) -> Result<usize, EvaluationError> {
        match self.integer(position)? {
            None => Ok(default),
            Some(count) => usize::try_from(count).map_err(|_| self.bad_argument()),
        }
    }

    pub(super) fn integer(&self, position: usize) -> Result<Option<i64>, EvaluationError> {
        let integer = match self.values.get(position) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_i64(),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        integer.map(Some).ok_or_else(|| self.bad_argument())
    }

    /// A boolean, quoted or not.
    pub(super) fn flag(&self, position: usize) -> Result<bool, EvaluationError> {
        match self.values.get(position) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(self.bad_argument()),
        }
    }

    pub(super) fn character(
        &self,
        position: usize,
        default: char,
    ) -> Result<char, EvaluationError> {
        let Some(value) = self.values.get(position) else {
            return Ok(default);
        };
        let text = text(value).unwrap_or_default();
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.bad_argument()),
        }
    }

    /// An argument as text; empty if it is missing.
    pub(super) fn argument(&self, position: usize) -> Result<Cow<'_, str>, EvaluationError> {
        match self.values.get(position) {
            None => Ok("".into()),
            Some(value) => text(value).ok_or_else(|| self.bad_argument()),
        }
    }

    pub(super) fn number(&self, position: usize) -> Result<Decimal, EvaluationError> {
        let value = self.values.get(position).unwrap_or(&Value::Null);
        self.to_number(value)
    }

    /// Converts as Liquid does: text to its leading number, null and booleans to zero.
    pub(super) fn to_number(&self, value: &Value) -> Result<Decimal, EvaluationError> {
        match value {
            Value::Number(number) => {
                Decimal::from_number(number).ok_or(EvaluationError::NumberTooLarge(self.filter))
            }
            Value::String(text) => Ok(number_at_start(text.trim()).unwrap_or(Decimal::ZERO)),
            Value::Null | Value::Bool(_) => Ok(Decimal::ZERO),
            Value::Array(_) | Value::Object(_) => Err(EvaluationError::NotNumber(self.filter)),
        }
    }

    /// The input as text; `None` for null.
    pub(super) fn text(&self) -> Result<Option<Cow<'a, str>>, EvaluationError> {
        if self.input.is_null() {
            return Ok(None);
        }
        match text(self.input) {
            Some(text) => Ok(Some(text)),
            None => Err(EvaluationError::NotText(self.filter)),
        }
    }

    /// The input as text; empty for null, as in most Liquid filters.
    pub(super) fn text_or_empty(&self) -> Result<Cow<'a, str>, EvaluationError> {
        self.text().map(Option::unwrap_or_default)
    }

    /// The input as a list: null is empty, and any other value is its only element.
    pub(super) fn list(&self) -> Result<&'a [Value], EvaluationError> {
        let list = match self.input {
            Value::Array(list) => list.as_slice(),
            Value::Null => &[],
            value => std::slice::from_ref(value),
        };
        self.charge_elements(list.len())?;
        Ok(list)
    }

    pub(super) fn map_text(
        &self,
        apply: impl FnOnce(&str) -> Result<String, EvaluationError>,
    ) -> FilterResult {
        match self.text()? {
            Some(text) => apply(&text).map(Value::from),
            None => Ok(Value::Null),
        }
    }
}

/// The text of a scalar; `None` for null, lists and objects.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(true) => Some("true".into()),
        Value::Bool(false) => Some("false".into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number_at_start(text: &str) -> Option<Decimal> {
    if let Some(whole) = Decimal::parse(text) {
        return Some(whole);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|character: char| !character.is_ascii_digit());
    let end = end.unwrap_or(digits.len()) + (text.len() - digits.len());
    Decimal::parse(&text[..end])
}
