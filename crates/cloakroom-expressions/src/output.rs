//! One `{{ … }}`: a value and the filters it passes through.

use std::borrow::Cow;

use serde_json::Value;

use crate::cursor::Cursor;
use crate::filters::{Filter, Given, Mark};
use crate::json_path::JsonPath;
use crate::scope::Environment;
use crate::tag::NAME_CHARACTERS_MAX;
use crate::variable::Operand;
use crate::work::Work;
use crate::{Context, EvaluationError, ParseError};

#[derive(Debug)]
pub(crate) enum Output {
    Value {
        start: Operand,
        filters: Filters,
    },
    /// Something other than a filter follows the value, as in `{{ data.number, reveal_last: 4 }}`.
    /// Such text is accepted, but where ignoring it would show the whole number it yields null.
    Ignored,
}

/// Filters one after the other.
#[derive(Debug)]
pub(crate) struct Filters {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    filter: &'static Filter,
    arguments: Vec<Operand>,
}

impl Output {
    /// Parses what stands between the braces.
    pub(crate) fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(text);
        cursor.skip_whitespace();
        let start = Operand::parse(&mut cursor)?.ok_or(ParseError::NoValue)?;
        cursor.skip_whitespace();
        if !cursor.is_at_end() && !cursor.next_is('|') {
            if !context.ignores_tails() {
                return Ok(Self::Ignored);
            }
            cursor.skip_to('|');
        }
        let filters = Filters::parse(context, &mut cursor)?;
        Ok(Self::Value { start, filters })
    }

    pub(crate) fn evaluate<'a>(
        &'a self,
        environment: &'a Environment<'_>,
        work: &mut Work,
    ) -> Result<Cow<'a, Value>, EvaluationError> {
        match self {
            Self::Value { start, filters } => {
                filters.apply(start.resolve(environment), environment, work)
            }
            Self::Ignored => Ok(Cow::Owned(Value::Null)),
        }
    }

    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Value { filters, .. } => {
                let mut calls = filters.calls.iter();
                calls.any(|call| call.filter.mark == Mark::Random)
            }
            Self::Ignored => false,
        }
    }
}

impl Filters {
    /// Parses up to the end; the cursor is at a `|` or at the end.
    pub(crate) fn parse(context: Context, cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut calls: Vec<Call> = Vec::new();
        while cursor.eat('|') {
            let call = Call::parse(cursor)?;
            let filter = call.filter;
            match calls.last().map(|previous| previous.filter) {
                Some(previous) if previous.mark == Mark::Last => {
                    return Err(ParseError::NotLast(previous.name));
                }
                Some(previous) if previous.mark == Mark::Bytes && filter.mark != Mark::Encoder => {
                    return Err(ParseError::NotEncoded(previous.name));
                }
                _ => {}
            }
            if filter.mark == Mark::Random && !context.allows_chance() {
                return Err(ParseError::RandomFilter(filter.name));
            }
            calls.push(call);
        }
        match calls.last().map(|last| last.filter) {
            Some(last) if last.mark == Mark::Bytes => Err(ParseError::NotEncoded(last.name)),
            _ => Ok(Self { calls }),
        }
    }

    pub(crate) fn apply<'a>(
        &'a self,
        start: Cow<'a, Value>,
        environment: &Environment<'_>,
        work: &mut Work,
    ) -> Result<Cow<'a, Value>, EvaluationError> {
        let mut value = start;
        let mut is_bytes = false;
        for call in &self.calls {
            let input = Input {
                value: &value,
                is_bytes,
            };
            value = Cow::Owned(call.apply(input, environment, work)?);
            is_bytes = call.filter.mark == Mark::Bytes;
        }
        Ok(value)
    }
}

/// What a filter is applied to.
struct Input<'a> {
    value: &'a Value,
    is_bytes: bool,
}

impl Call {
    /// Parses a filter and leaves the cursor at the next `|` or at the end.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
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
        let call = Self { filter, arguments };
        call.check_path()?;
        Ok(call)
    }

    /// A path that is written down is checked when it is written, not when it is read.
    fn check_path(&self) -> Result<(), ParseError> {
        match self.arguments.first() {
            Some(Operand::Literal(Value::String(path)))
                if self.filter.mark == Mark::Path && JsonPath::parse(path).is_none() =>
            {
                Err(ParseError::BadPath(self.filter.name))
            }
            _ => Ok(()),
        }
    }

    fn apply(
        &self,
        input: Input<'_>,
        environment: &Environment<'_>,
        work: &mut Work,
    ) -> Result<Value, EvaluationError> {
        work.step()?;
        work.charge(input.value)?;
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            let value = argument.resolve(environment);
            work.charge(&value)?;
            values.push(value.into_owned());
        }
        let sources = environment.sources();
        let given = Given::new(self.filter.name, input.value, values, sources);
        let given = given.with_bytes(input.is_bytes);
        let result = (self.filter.apply)(&given);
        work.charge_bytes(given.spent())?;
        result
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
