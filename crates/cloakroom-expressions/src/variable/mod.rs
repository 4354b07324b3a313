//! Operands: literals, and variables with their paths.

use std::borrow::Cow;

use serde_json::Value;

use crate::cursor::Cursor;
use crate::scope::Environment;
use crate::{CONFIGURATION, DEPTH_MAX, ParseError};

/// Maximum path length of one variable.
const LOOKUPS_MAX: usize = 64;

/// Number of characters that cost as much as one lookup.
const CHARACTERS_PER_LOOKUP: usize = 16;

#[derive(Debug)]
pub(crate) enum Operand {
    Literal(Value),
    /// Equals empty text, lists and objects; in other positions it is empty text.
    Empty,
    /// Equals the same values as `Empty`, and null, false and whitespace.
    Blank,
    Variable(Variable),
}

#[derive(Debug)]
pub(crate) struct Variable {
    root: String,
    path: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Member(String),
    Index(Operand),
}

const MISSING: Cow<'static, Value> = Cow::Owned(Value::Null);

impl Operand {
    /// Parses an operand, if there is one at the cursor.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Option<Self>, ParseError> {
        Self::parse_nested(cursor, 0)
    }

    fn parse_nested(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<Self>, ParseError> {
        if depth > DEPTH_MAX {
            return Err(ParseError::TooDeep);
        }
        if let Some(text) = cursor.quoted() {
            return Ok(Some(Self::Literal(text.into())));
        }
        if let Some(number) = cursor.number() {
            return Ok(Some(Self::Literal(number)));
        }
        let Some(name) = cursor.identifier() else {
            return Ok(None);
        };
        Ok(Some(match name {
            "true" => Self::Literal(true.into()),
            "false" => Self::Literal(false.into()),
            "nil" | "null" => Self::Literal(Value::Null),
            "empty" => Self::Empty,
            "blank" => Self::Blank,
            _ => Self::Variable(Variable {
                root: name.to_owned(),
                path: parse_path(cursor, depth)?,
            }),
        }))
    }

    pub(crate) fn as_literal(&self) -> Option<&Value> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// The name in `proxy.config.NAME`.
    pub(crate) fn configuration_name(&self) -> Option<&str> {
        match self {
            Self::Variable(Variable { root, path }) if root == "proxy" => match &path[..] {
                [Step::Member(config), Step::Member(name)] if config == "config" => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of the operand as the key of a signature, which may be a configuration value.
    pub(crate) fn resolve_key<'a>(&'a self, environment: &'a Environment<'_>) -> Cow<'a, Value> {
        let configured = self.configuration_name().and_then(|name| {
            let configuration = environment.find(CONFIGURATION)?;
            configuration.get(name).map(Cow::Borrowed)
        });
        configured.unwrap_or_else(|| self.resolve(environment))
    }

    /// The value of the operand; null if it is missing.
    pub(crate) fn resolve<'a>(&'a self, environment: &'a Environment<'_>) -> Cow<'a, Value> {
        match self {
            Self::Literal(value) => Cow::Borrowed(value),
            Self::Empty | Self::Blank => Cow::Owned("".into()),
            Self::Variable(variable) => variable.resolve(environment).unwrap_or(MISSING),
        }
    }
}

impl Variable {
    fn resolve<'a>(&'a self, environment: &'a Environment<'_>) -> Option<Cow<'a, Value>> {
        environment.count_lookups(1 + self.path.len());
        let root = Cow::Borrowed(environment.find(&self.root)?);
        let mut steps = self.path.iter();
        steps.try_fold(root, |value, step| step.from(value, environment))
    }
}

/// Parses all well-formed steps. A malformed step remains for the caller to report.
fn parse_path(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Step>, ParseError> {
    let mut path = Vec::new();
    loop {
        let mut ahead = *cursor;
        let step = if ahead.eat('.') {
            ahead.identifier().map(|name| Step::Member(name.to_owned()))
        } else if ahead.eat('[') {
            parse_index(&mut ahead, depth)?
        } else {
            None
        };
        let Some(step) = step else {
            return Ok(path);
        };
        if path.len() == LOOKUPS_MAX {
            return Err(ParseError::TooManyLookups);
        }
        path.push(step);
        *cursor = ahead;
    }
}

fn parse_index(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<Step>, ParseError> {
    cursor.skip_whitespace();
    let index = Operand::parse_nested(cursor, depth + 1)?;
    cursor.skip_whitespace();
    let closed = cursor.eat(']');
    Ok(index.filter(|_| closed).map(Step::Index))
}

impl Step {
    fn from<'a>(
        &'a self,
        value: Cow<'a, Value>,
        environment: &'a Environment<'_>,
    ) -> Option<Cow<'a, Value>> {
        match self {
            Self::Member(name) => {
                if let (Value::String(text), "size") = (&*value, name.as_str()) {
                    // Counting characters costs as much as reading them.
                    environment.count_lookups(text.len() / CHARACTERS_PER_LOOKUP);
                }
                member(value, name)
            }
            Self::Index(index) => match &*index.resolve(environment) {
                Value::String(name) => child(value, |value| value.get(name)),
                Value::Number(number) => {
                    let position = number.as_i64()?;
                    child(value, |value| element(value.as_array()?, position))
                }
                _ => None,
            },
        }
    }
}

fn member<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    let size = |length: usize| Some(Cow::Owned(length.into()));
    match (&*value, name) {
        (Value::Object(object), _) if object.contains_key(name) => {
            child(value, |value| value.get(name))
        }
        (Value::Object(object), "size") => size(object.len()),
        (Value::Array(array), "size") => size(array.len()),
        (Value::Array(_), "first") => child(value, |value| value.as_array()?.first()),
        (Value::Array(_), "last") => child(value, |value| value.as_array()?.last()),
        (Value::String(text), "size") => size(text.chars().count()),
        _ => None,
    }
}

/// Negative positions count from the end.
fn element(array: &[Value], position: i64) -> Option<&Value> {
    let distance = usize::try_from(position.unsigned_abs()).ok()?;
    let position = match position {
        0.. => distance,
        _ => array.len().checked_sub(distance)?,
    };
    array.get(position)
}

/// Moves to a child without cloning a borrowed value.
fn child<'a>(
    value: Cow<'a, Value>,
    step: impl Fn(&Value) -> Option<&Value>,
) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => step(value).map(Cow::Borrowed),
        Cow::Owned(value) => step(&value).cloned().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests;
