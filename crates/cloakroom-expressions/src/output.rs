//! One `{{ … }}`: a value and the filters it passes through.

use std::borrow::Cow;

use serde_json::Value;

use crate::cursor::Cursor;
use crate::filters::Filter;
use crate::size::Work;
use crate::variable::Operand;
use crate::{EvaluationError, ParseError};

#[derive(Debug)]
pub(crate) enum Output {
    Value {
        start: Operand,
        filters: Vec<Call>,
    },
    /// Something other than a filter follows the value, as in `{{ data.number, reveal_last: 4 }}`.
    /// Such text is accepted, but ignoring it would show the whole number: it yields null.
    Ignored,
}

#[derive(Debug)]
pub(crate) struct Call {
    filter: &'static Filter,
    arguments: Vec<Operand>,
}

impl Output {
    /// Parses what stands between the braces.
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(text);
        cursor.skip_whitespace();
        let start = Operand::parse(&mut cursor)?.ok_or(ParseError::NoValue)?;
        cursor.skip_whitespace();
        if !cursor.is_at_end() && !cursor.next_is('|') {
            return Ok(Self::Ignored);
        }

        let mut filters: Vec<Call> = Vec::new();
        while cursor.eat('|') {
            if let Some(call) = filters.last().filter(|call| call.filter.is_last) {
                return Err(ParseError::NotLast(call.filter.name));
            }
            filters.push(Call::parse(&mut cursor)?);
        }
        Ok(Self::Value { start, filters })
    }

    pub(crate) fn evaluate<'a>(
        &'a self,
        data: &'a Value,
        work: &mut Work,
    ) -> Result<Cow<'a, Value>, EvaluationError> {
        let Self::Value { start, filters } = self else {
            return Ok(Cow::Owned(Value::Null));
        };
        filters.iter().try_fold(start.resolve(data), |value, call| {
            call.apply(&value, data, work).map(Cow::Owned)
        })
    }
}

impl Call {
    /// Parses a filter and leaves the cursor at the next `|` or at the end.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        /// Enough to recognize a misspelled name without echoing a whole text.
        const NAME_CHARACTERS_MAX: usize = 40;

        cursor.skip_whitespace();
        let name = cursor.identifier().ok_or(ParseError::NoFilter)?;
        let filter = Filter::find(name).ok_or_else(|| {
            ParseError::UnknownFilter(name.chars().take(NAME_CHARACTERS_MAX).collect())
        })?;
        let bad = || ParseError::BadArgument(filter.name);

        let mut arguments = Vec::new();
        cursor.skip_whitespace();
        if cursor.eat(':') {
            loop {
                arguments.extend(parse_argument(cursor)?.ok_or_else(bad)?.0);
                cursor.skip_whitespace();
                if !cursor.eat(',') {
                    break;
                }
            }
        }
        if !cursor.is_at_end() && !cursor.next_is('|') {
            return Err(bad());
        }
        if !filter.arguments.contains(&arguments.len()) {
            return Err(ParseError::ArgumentCount {
                filter: filter.name,
                expected: filter.expected,
            });
        }
        Ok(Self { filter, arguments })
    }

    fn apply(
        &self,
        input: &Value,
        data: &Value,
        work: &mut Work,
    ) -> Result<Value, EvaluationError> {
        work.charge(input)?;
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            let value = argument.resolve(data);
            work.charge(&value)?;
            values.push(value.into_owned());
        }
        self.filter.apply(input, values)
    }
}

/// An argument that counts, or the place of one that has a name and is ignored.
struct Argument(Option<Operand>);

fn parse_argument(cursor: &mut Cursor<'_>) -> Result<Option<Argument>, ParseError> {
    cursor.skip_whitespace();
    let mut ahead = *cursor;
    let named = ahead.identifier().is_some() && {
        ahead.skip_whitespace();
        ahead.eat(':')
    };
    if named {
        ahead.skip_whitespace();
        *cursor = ahead;
    }
    let operand = Operand::parse(cursor)?;
    Ok(operand.map(|operand| Argument((!named).then_some(operand))))
}
