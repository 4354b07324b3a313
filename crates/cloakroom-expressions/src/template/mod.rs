//! `Template`: text with outputs and tags.

use serde_json::Value;

use crate::budget::Budget;
use crate::node::{self, Node};
use crate::render::{Renderer, push};
use crate::scope::{Environment, Scope};
use crate::{Context, EvaluationError, OUTPUT_BYTES_MAX, ParseError};

/// A parsed expression.
///
/// A template that consists of exactly one output preserves the JSON type of its value; any other result is text.
#[derive(Debug)]
pub struct Template {
    context: Context,
    nodes: Vec<Node>,
}

impl Template {
    pub fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let longest = context.text_characters_max();
        if text.chars().nth(longest).is_some() {
            return Err(ParseError::TooLong(longest));
        }
        let nodes = node::parse(context, text)?;
        Ok(Self { context, nodes })
    }

    /// Whether the value is random, so that a caller may retry after a collision.
    pub fn is_random(&self) -> bool {
        node::is_random(&self.nodes)
    }

    /// Evaluates the template. A missing variable is null, not an error.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, EvaluationError> {
        self.evaluate_within(scope, OUTPUT_BYTES_MAX, &mut Budget::default())
            .map(|(value, _)| value)
    }

    /// Evaluates to text, for ids, fingerprints and search indexes.
    pub fn evaluate_to_text(&self, scope: &Scope<'_>) -> Result<String, EvaluationError> {
        let mut text = String::new();
        push(&mut text, &self.evaluate(scope)?);
        match text.is_empty() && self.context.requires_text() {
            true => Err(EvaluationError::Empty),
            false => Ok(text),
        }
    }

    /// Also returns how many bytes of `limit` the value uses.
    pub(crate) fn evaluate_within(
        &self,
        scope: &Scope<'_>,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<(Value, usize), EvaluationError> {
        let environment = Environment::new(self.context, scope);
        if let [Node::Output(output)] = &self.nodes[..] {
            budget.charge_step()?;
            // Measured before cloning, so that an oversized value is never copied.
            let value = output.evaluate(&environment, budget)?;
            let size = budget
                .measure(&value, limit)
                .ok_or(EvaluationError::TooLarge)?;
            return Ok((value.into_owned(), size));
        }

        let mut renderer = Renderer {
            environment,
            budget,
            text: String::new(),
            limit,
        };
        renderer.render(&self.nodes)?;
        let size = renderer.text.len();
        Ok((Value::String(renderer.text), size))
    }
}

#[cfg(test)]
mod tests;
