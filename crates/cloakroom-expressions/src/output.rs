//! One `{{ … }}` output: a value and its filters.

use std::borrow::Cow;

use serde_json::Value;

use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::filters::{Filter, FilterArgs, Kind};
use crate::json_path::JsonPath;
use crate::scope::Environment;
use crate::tag::NAME_CHARACTERS_MAX;
use crate::variable::Operand;
use crate::{Context, EvaluationError, ParseError};

#[derive(Debug)]
pub(crate) enum Output {
    Value {
        start: Operand,
        filters: Filters,
    },
    /// Text other than a filter follows the value, as in `{{ data.number, reveal_last: 4 }}`. Yields null in
    /// contexts where ignoring that text would reveal the whole value.
    Null,
}

/// A chain of filters.
#[derive(Debug)]
pub(crate) struct Filters {
    calls: Vec<FilterCall>,
}

#[derive(Debug)]
struct FilterCall {
    filter: &'static Filter,
    arguments: Vec<Operand>,
}

impl Output {
    /// Parses the text between the braces.
    pub(crate) fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let mut cursor = Cursor::new(text);
        cursor.skip_whitespace();
        let start = Operand::parse(&mut cursor)?.ok_or(ParseError::NoValue)?;
        cursor.skip_whitespace();
        if !cursor.is_at_end() && !cursor.next_is('|') {
            if !context.ignores_trailing_text() {
                return Ok(Self::Null);
            }
            cursor.skip_to('|');
        }
        let filters = Filters::parse(context, &mut cursor)?;
        Ok(Self::Value { start, filters })
    }

    pub(crate) fn evaluate<'a>(
        &'a self,
        environment: &'a Environment<'_>,
        budget: &mut Budget,
    ) -> Result<Cow<'a, Value>, EvaluationError> {
        match self {
            Self::Value { start, filters } => {
                filters.apply(start.resolve(environment), environment, budget)
            }
            Self::Null => Ok(Cow::Owned(Value::Null)),
        }
    }

    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Value { filters, .. } => {
                let mut calls = filters.calls.iter();
                calls.any(|call| call.filter.kind == Kind::Random)
            }
            Self::Null => false,
        }
    }
}

impl Filters {
    /// Parses to the end of the text. The cursor must be at a `|` or at the end.
    pub(crate) fn parse(context: Context, cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut calls: Vec<FilterCall> = Vec::new();
        while cursor.eat('|') {
            let call = FilterCall::parse(cursor)?;
            let filter = call.filter;
            match calls.last().map(|previous| previous.filter) {
                Some(previous) if previous.kind == Kind::Last => {
                    return Err(ParseError::NotLast(previous.name));
                }
                Some(previous) if previous.kind == Kind::Bytes && filter.kind != Kind::Encoder => {
                    return Err(ParseError::NotEncoded(previous.name));
                }
                _ => {}
            }
            if filter.kind == Kind::Random && !context.allows_random() {
                return Err(ParseError::RandomFilter(filter.name));
            }
            calls.push(call);
        }
        match calls.last().map(|last| last.filter) {
            Some(last) if last.kind == Kind::Bytes => Err(ParseError::NotEncoded(last.name)),
            _ => Ok(Self { calls }),
        }
    }

    pub(crate) fn apply<'a>(
        &'a self,
        start: Cow<'a, Value>,
        environment: &Environment<'_>,
        budget: &mut Budget,
    ) -> Result<Cow<'a, Value>, EvaluationError> {
        let mut value = start;
        let mut is_bytes = false;
        for call in &self.calls {
            let input = Input {
                value: &value,
                is_bytes,
            };
            value = Cow::Owned(call.apply(input, environment, budget)?);
            is_bytes = call.filter.kind == Kind::Bytes;
        }
        Ok(value)
    }
}

/// The position of the key in the arguments of `hmac`.
const SIGNATURE_KEY: usize = 1;

/// The formats of an expiry that do not require reveal.
const EXPIRY_FORMATS: [&str; 17] = [
    "MM", "YY", "YYYY", "MMYY", "MM/YY", "MM-YY", "MM_YY", "MMYYYY", "MM/YYYY", "MM-YYYY",
    "MM_YYYY", "YYMM", "YYYYMM", "YYYY-MM", "YYYY/MM", "YYYY_MM", "YY/MM",
];

impl Filters {
    /// Whether the filters only select a value at a fixed path, or its last four, BIN or expiry, or pad it. These are
    /// total, and determined by the text of the expression alone.
    pub(crate) fn are_closed(&self) -> bool {
        // Padding is last: it would move what the others select.
        let mut after_padding = self
            .calls
            .iter()
            .skip_while(|call| !call.is_padding())
            .skip(1);
        self.calls.iter().all(FilterCall::is_closed)
            && after_padding.all(|call| call.filter.name == "to_string")
    }

    /// The member that the filters select, if they begin with a fixed path to one.
    pub(crate) fn selected_member(&self) -> Option<String> {
        let path = self.calls.first()?.path().filter(JsonPath::is_fixed)?;
        path.member().map(str::to_owned)
    }

    /// Whether the filters select, and change nothing.
    pub(crate) fn only_select(&self) -> bool {
        self.calls.iter().all(|call| call.filter.name == "json")
    }

    /// Whether the filters only concatenate text, or sign it with a configuration value.
    pub(crate) fn only_sign(&self) -> bool {
        self.calls.iter().all(|call| match call.filter.name {
            "append" | "prepend" | "downcase" | "upcase" => true,
            "hmac" => call
                .arguments
                .get(SIGNATURE_KEY)
                .is_some_and(|key| key.configuration_name().is_some()),
            "json" => call.is_closed(),
            // Filters::parse accepts `hmac` only before one of these.
            "to_base16" | "to_base64" => self
                .calls
                .iter()
                .any(|call| call.filter.kind == Kind::Bytes),
            _ => false,
        })
    }
}

impl FilterCall {
    fn is_padding(&self) -> bool {
        matches!(self.filter.name, "pad_left" | "pad_right")
    }

    fn is_closed(&self) -> bool {
        let literals = self.arguments.iter().filter_map(Operand::as_literal);
        match self.filter.name {
            "json" => self.path().is_some_and(|path| path.is_fixed()),
            "last4" | "to_string" => true,
            "card_bin" => self.arguments.is_empty(),
            "card_exp" => literals
                .clone()
                .any(|format| EXPIRY_FORMATS.iter().any(|it| format == it)),
            "pad_left" | "pad_right" => literals.count() == self.arguments.len(),
            _ => false,
        }
    }

    /// The literal path of `json`.
    fn path(&self) -> Option<JsonPath> {
        let path = self.arguments.first()?.as_literal()?.as_str()?;
        (self.filter.kind == Kind::Path).then(|| JsonPath::parse(path))?
    }
}

/// The input of a filter.
struct Input<'a> {
    value: &'a Value,
    is_bytes: bool,
}

impl FilterCall {
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

    /// Validates a literal path at parse time.
    fn check_path(&self) -> Result<(), ParseError> {
        match self.arguments.first() {
            Some(Operand::Literal(Value::String(path)))
                if self.filter.kind == Kind::Path && JsonPath::parse(path).is_none() =>
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
        budget: &mut Budget,
    ) -> Result<Value, EvaluationError> {
        budget.charge_step()?;
        budget.charge(input.value)?;
        let mut values = Vec::with_capacity(self.arguments.len());
        for (position, argument) in self.arguments.iter().enumerate() {
            let value = match (self.filter.kind, position) {
                (Kind::Bytes, SIGNATURE_KEY) => argument.resolve_key(environment),
                _ => argument.resolve(environment),
            };
            budget.charge(&value)?;
            values.push(value.into_owned());
        }
        let sources = environment.sources();
        let args = FilterArgs::new(self.filter.name, input.value, values, sources);
        let args = args.with_bytes(input.is_bytes);
        let result = (self.filter.apply)(&args);
        budget.charge_bytes(args.charged())?;
        result
    }
}

/// A positional argument, or `None` for a named one, which is ignored.
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
