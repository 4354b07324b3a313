//! Values an expression starts from: literals, and variables with their paths.

use std::borrow::Cow;

use serde_json::Value;

use crate::cursor::Cursor;
use crate::scope::Environment;
use crate::{DEPTH_MAX, ParseError};

/// How many members and elements one variable may go through.
const LOOKUPS_MAX: usize = 64;

/// How many characters are counted for the price of one lookup.
const CHARACTERS_PER_LOOKUP: usize = 16;

#[derive(Debug)]
pub(crate) enum Operand {
    Literal(Value),
    /// Equals every text, list and object without content; elsewhere it is empty text.
    Empty,
    /// Equals what `Empty` equals, and also null, false and text made of whitespace.
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
    /// Reads a value, or nothing if there is none here.
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

    /// What this stands for; what is missing is null.
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

/// Reads as many steps as there are; a broken one is left for the caller to find.
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
                    // Counting characters is as much work as looking at them.
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

/// Goes one step down without cloning what is borrowed.
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Context, Scope};

    #[test]
    fn paths_find_their_value_or_null() {
        let data = json!({
            "number": "42", "a-b": 1, "list": [1, 2, 3], "key": "number", "at": 1,
            "deep": { "list": [{ "x": true }] }, "size": "own",
        });
        let cases = [
            ("data.number", json!("42")),
            ("data.a-b", json!(1)),
            ("data['number']", json!("42")),
            ("data[\"number\"]", json!("42")),
            ("data[ 'number' ]", json!("42")),
            ("data.list[0]", json!(1)),
            ("data.list[-1]", json!(3)),
            ("data.list[-4]", Value::Null),
            ("data.list[3]", Value::Null),
            ("data.list['0']", Value::Null),
            ("data.list[-9223372036854775808]", Value::Null),
            ("data.list.size", json!(3)),
            ("data.list.first", json!(1)),
            ("data.list.last", json!(3)),
            ("data.number.size", json!(2)),
            ("data.deep.size", json!(1)),
            ("data.size", json!("own")),
            ("data.deep.list[0].x", json!(true)),
            ("data[data.key]", json!("42")),
            ("data.list[data.at]", json!(2)),
            ("data.missing", Value::Null),
            ("data.missing.deeper[1]", Value::Null),
            ("data.number.deeper", Value::Null),
            ("other.number", Value::Null),
            ("metadata.number", Value::Null),
            ("nil", Value::Null),
            ("'text'", json!("text")),
            ("-1.5", json!(-1.5)),
            ("false", json!(false)),
            ("blank", json!("")),
        ];
        let variables = [("data", &data), ("metadata", &data)];
        let environment = Environment::new(Context::Mask, &Scope::of(&variables));
        for (text, expected) in cases {
            let mut cursor = Cursor::new(text);
            let operand = Operand::parse(&mut cursor).unwrap().unwrap();
            assert!(cursor.is_at_end(), "{text}");
            assert_eq!(*operand.resolve(&environment), expected, "{text}");
        }
    }

    #[test]
    fn variables_inside_variables_have_a_limit() {
        let nested = |depth| "data[".repeat(depth) + "1" + &"]".repeat(depth);
        let parse = |text: &str| Operand::parse(&mut Cursor::new(text)).map(|_| ());

        assert_eq!(parse(&nested(DEPTH_MAX)), Ok(()));
        assert_eq!(parse(&nested(DEPTH_MAX + 1)), Err(ParseError::TooDeep));

        let long = |lookups| "data".to_owned() + &".a".repeat(lookups);
        assert_eq!(parse(&long(LOOKUPS_MAX)), Ok(()));
        let error = Err(ParseError::TooManyLookups);
        assert_eq!(parse(&long(LOOKUPS_MAX + 1)), error);
    }
}
