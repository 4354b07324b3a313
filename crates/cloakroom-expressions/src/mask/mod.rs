//! `Mask`: JSON whose strings are templates that reveal parts of a token's data.

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::{Context, DEPTH_MAX, OUTPUT_BYTES_MAX, ParseError, Scope, Sources, Template};

/// A parsed mask. Keys, numbers, booleans and nulls are literals.
#[derive(Debug)]
pub struct Mask {
    root: Node,
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Template(Template),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A parse error, with its path in the mask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct MaskError {
    /// For example `cards[0].number`; empty for the mask itself.
    pub path: String,
    pub error: ParseError,
}

impl Mask {
    pub fn parse(mask: &Value) -> Result<Self, MaskError> {
        let root = parse(mask, &mut Vec::new())?;
        Ok(Self { root })
    }

    /// Applies the mask to `data`. A template that fails evaluates to null: a failing mask must not reveal data and
    /// must not make the rest of the token unreadable.
    pub fn apply(&self, data: &Value) -> Value {
        self.apply_with(data, &Sources::default())
    }

    /// Like `apply`, for masks that need the time, randomness or an HMAC.
    pub fn apply_with(&self, data: &Value, sources: &Sources<'_>) -> Value {
        let variables = [("data", data)];
        let scope = Scope {
            variables: &variables,
            sources: *sources,
        };
        let mut budget = MaskBudget {
            output_bytes_left: OUTPUT_BYTES_MAX,
            evaluation: Budget::default(),
        };
        apply(&self.root, &scope, &mut budget)
    }
}

/// One step of a path into a JSON value.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn parse<'a>(mask: &'a Value, path: &mut Vec<Step<'a>>) -> Result<Node, MaskError> {
    if path.len() > DEPTH_MAX {
        return Err(at(path, ParseError::TooDeep));
    }
    let mut parse_at = |step, child| {
        path.push(step);
        let node = parse(child, path);
        path.pop();
        node
    };
    Ok(match mask {
        Value::String(text) => {
            let template = Template::parse(Context::Mask, text);
            Node::Template(template.map_err(|error| at(path, error))?)
        }
        Value::Array(children) => Node::Array(
            (children.iter().enumerate())
                .map(|(index, child)| parse_at(Step::Index(index), child))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(members) => Node::Object(
            (members.iter())
                .map(|(key, child)| Ok((key.clone(), parse_at(Step::Key(key), child)?)))
                .collect::<Result<_, _>>()?,
        ),
        literal => Node::Literal(literal.clone()),
    })
}

fn at(path: &[Step<'_>], error: ParseError) -> MaskError {
    MaskError {
        path: path_text(path),
        error,
    }
}

/// Formats a path, for example `cards[0].number`. Different paths have different texts.
pub(crate) fn path_text(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if key.contains(['.', '[', ']', '"']) => {
                text.push_str(&format!("[{key:?}]"))
            }
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.extend([".", key]),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The remaining budget of one application of a mask, shared by all of its templates.
struct MaskBudget {
    output_bytes_left: usize,
    evaluation: Budget,
}

fn apply(node: &Node, scope: &Scope<'_>, budget: &mut MaskBudget) -> Value {
    match node {
        Node::Literal(value) => value.clone(),
        Node::Template(template) => {
            let limit = budget.output_bytes_left;
            match template.evaluate_within(scope, limit, &mut budget.evaluation) {
                Ok((value, size)) => {
                    budget.output_bytes_left -= size;
                    value
                }
                Err(_) => Value::Null,
            }
        }
        Node::Array(children) => (children.iter())
            .map(|child| apply(child, scope, budget))
            .collect(),
        Node::Object(members) => (members.iter())
            .map(|(key, child)| (key.clone(), apply(child, scope, budget)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests;
