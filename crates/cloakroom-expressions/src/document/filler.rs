//! Replaces the references of a document by their values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{DocumentError, Node, Output, Part, Reference, at};
use crate::budget::Budget;
use crate::mask::Step;
use crate::render::push;
use crate::scope::Environment;
use crate::{EvaluationError, OUTPUT_BYTES_MAX};

pub(super) struct Filler<'a, F> {
    pub(super) references: &'a [Reference],
    pub(super) value_of: F,
    pub(super) environment: Environment<'a>,
    pub(super) budget: Budget,
    /// Whether an expression that fails is null.
    pub(super) is_total: bool,
}

impl<'v, F: Fn(&Reference) -> Option<&'v Value>> Filler<'_, F> {
    pub(super) fn node<'n>(
        &mut self,
        node: &'n Node,
        path: &mut Vec<Step<'n>>,
    ) -> Result<Value, DocumentError<EvaluationError>> {
        Ok(match node {
            Node::Literal(value) => value.clone(),
            Node::Whole(output) => {
                let mut left = OUTPUT_BYTES_MAX;
                let filled = self.output(output, &mut left);
                filled.map_err(|error| at(path, error))?
            }
            Node::Text(parts) => self.text(parts).map_err(|error| at(path, error))?,
            Node::Array(children) => {
                let mut filled = Vec::with_capacity(children.len());
                for (index, child) in children.iter().enumerate() {
                    path.push(Step::Index(index));
                    filled.push(self.node(child, path)?);
                    path.pop();
                }
                Value::Array(filled)
            }
            Node::Object(members) => {
                let mut filled = Map::new();
                for (key, child) in members {
                    path.push(Step::Key(key));
                    filled.insert(key.clone(), self.node(child, path)?);
                    path.pop();
                }
                Value::Object(filled)
            }
        })
    }

    /// The limit applies to inserted values, not to the text around them.
    fn text(&mut self, parts: &[Part]) -> Result<Value, EvaluationError> {
        let mut text = String::new();
        let mut left = OUTPUT_BYTES_MAX;
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Output(output) => push(&mut text, &self.output(output, &mut left)?),
            }
        }
        Ok(text.into())
    }

    fn output(&mut self, output: &Output, left: &mut usize) -> Result<Value, EvaluationError> {
        match self.evaluate(output, left) {
            Err(_) if self.is_total => Ok(Value::Null),
            evaluated => evaluated,
        }
    }

    fn evaluate(&mut self, output: &Output, left: &mut usize) -> Result<Value, EvaluationError> {
        self.budget.charge_step()?;
        let value = (self.references.get(output.reference))
            .and_then(&self.value_of)
            .ok_or(EvaluationError::Unresolved)?;
        let start = Cow::Borrowed(value);
        let value = (output.filters).apply(start, &self.environment, &mut self.budget)?;
        // Measured before cloning, so that an oversized value is never copied.
        let size = self.budget.measure(&value, *left);
        *left -= size.ok_or(EvaluationError::TooLarge)?;
        Ok(value.into_owned())
    }
}
