//! Conditions of `if`, `unless` and `case`, and comparison of values.

use std::cmp::Ordering;

use serde_json::Value;

use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::number::Decimal;
use crate::scope::Environment;
use crate::variable::Operand;
use crate::{DEPTH_MAX, EvaluationError, ParseError};

/// A chain of comparisons. Connectives are right-associative, as in Liquid: `a and b or c` is
/// `a and (b or c)`.
#[derive(Debug)]
pub(crate) struct Condition {
    first: Comparison,
    rest: Option<(Connective, Box<Condition>)>,
}

#[derive(Debug)]
struct Comparison {
    left: Operand,
    right: Option<(Operator, Operand)>,
}

#[derive(Debug, Clone, Copy)]
enum Connective {
    And,
    Or,
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Contains,
}

/// Longer operators first: `<=` starts with `<`.
const OPERATORS: [(&str, Operator); 8] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<>", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("contains", Operator::Contains),
];

impl Condition {
    /// Parses the whole text; `None` if it is not a condition.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, ParseError> {
        Self::parse_nested(&mut Cursor::new(text), 0)
    }

    fn parse_nested(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<Self>, ParseError> {
        if depth > DEPTH_MAX {
            return Err(ParseError::TooDeep);
        }
        let Some(first) = Comparison::parse(cursor)? else {
            return Ok(None);
        };
        let connective = if cursor.eat_word("and") {
            Connective::And
        } else if cursor.eat_word("or") {
            Connective::Or
        } else {
            let whole = cursor.is_at_end();
            return Ok(whole.then_some(Self { first, rest: None }));
        };
        let rest = Self::parse_nested(cursor, depth + 1)?;
        Ok(rest.map(|rest| Self {
            first,
            rest: Some((connective, Box::new(rest))),
        }))
    }

    pub(crate) fn holds(
        &self,
        environment: &Environment<'_>,
        budget: &mut Budget,
    ) -> Result<bool, EvaluationError> {
        let first = self.first.holds(environment, budget)?;
        match (&self.rest, first) {
            (Some((Connective::And, rest)), true) | (Some((Connective::Or, rest)), false) => {
                rest.holds(environment, budget)
            }
            _ => Ok(first),
        }
    }
}

impl Comparison {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Option<Self>, ParseError> {
        cursor.skip_whitespace();
        let Some(left) = Operand::parse(cursor)? else {
            return Ok(None);
        };
        cursor.skip_whitespace();
        let found = OPERATORS.iter().find(|(sign, _)| cursor.eat_text(sign));
        let Some((_, operator)) = found else {
            return Ok(Some(Self { left, right: None }));
        };
        cursor.skip_whitespace();
        let right = Operand::parse(cursor)?;
        cursor.skip_whitespace();
        Ok(right.map(|right| Self {
            left,
            right: Some((*operator, right)),
        }))
    }

    fn holds(
        &self,
        environment: &Environment<'_>,
        budget: &mut Budget,
    ) -> Result<bool, EvaluationError> {
        budget.charge_step()?;
        let left = self.left.resolve(environment);
        let Some((operator, right)) = &self.right else {
            return Ok(is_true(&left));
        };
        budget.charge(&left)?;
        budget.charge(&right.resolve(environment))?;
        match operator {
            Operator::Equal => return Ok(are_equal(&self.left, right, environment)),
            Operator::NotEqual => return Ok(!are_equal(&self.left, right, environment)),
            Operator::Contains => return Ok(contains(&left, &right.resolve(environment))),
            _ => {}
        }
        let right = right.resolve(environment);
        if left.is_null() || right.is_null() {
            return Ok(false);
        }
        let order = order(&left, &right).ok_or(EvaluationError::NotComparable)?;
        Ok(match operator {
            Operator::Less => order.is_lt(),
            Operator::Greater => order.is_gt(),
            Operator::LessOrEqual => order.is_le(),
            _ => order.is_ge(),
        })
    }
}

/// Null and false are false; everything else, including zero and empty text, is true.
pub(crate) fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

pub(crate) fn are_equal(left: &Operand, right: &Operand, environment: &Environment<'_>) -> bool {
    match (left, right) {
        (Operand::Empty, other) | (other, Operand::Empty) => is_empty(&other.resolve(environment)),
        (Operand::Blank, other) | (other, Operand::Blank) => is_blank(&other.resolve(environment)),
        _ => equal(&left.resolve(environment), &right.resolve(environment)),
    }
}

/// Numbers are compared by value, not by text: 1.0 equals 1.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        _ => left == right,
    }
}

/// Orders two numbers or two strings; other values have no order.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => {
            let exact = Decimal::from_number(left).zip(Decimal::from_number(right));
            match exact.and_then(|(left, right)| left.compare(right)) {
                Some(order) => Some(order),
                None => left.as_f64()?.partial_cmp(&right.as_f64()?),
            }
        }
        _ => None,
    }
}

fn contains(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::String(text), Value::Number(part)) => text.contains(&part.to_string()),
        (Value::Array(list), item) => list.iter().any(|other| equal(other, item)),
        (Value::Object(object), Value::String(name)) => object.contains_key(name),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        value => !is_true(value) || is_empty(value),
    }
}

#[cfg(test)]
mod tests;
