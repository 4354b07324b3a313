//! Renders the nodes of a template to text.

use serde_json::Value;

use crate::budget::Budget;
use crate::condition::{are_equal, equal};
use crate::node::{Arm, Branch, Node};
use crate::scope::{Environment, LoopPosition};
use crate::tag::{ForHead, Items};
use crate::variable::Operand;
use crate::{EvaluationError, ITERATIONS_MAX};

/// Cost of finding a member or element, in bytes of work.
const LOOKUP_BYTES: usize = 16;

/// The text rendered so far, and the remaining budget.
pub(crate) struct Renderer<'r, 'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) budget: &'r mut Budget,
    pub(crate) text: String,
    /// Maximum size of the text, in bytes.
    pub(crate) limit: usize,
}

/// Control flow after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

impl Renderer<'_, '_> {
    pub(crate) fn render(&mut self, nodes: &[Node]) -> Result<Flow, EvaluationError> {
        for node in nodes {
            self.budget.charge_step()?;
            let flow = self.node(node)?;
            let lookups = self.environment.take_lookups();
            self.budget
                .charge_bytes(lookups.saturating_mul(LOOKUP_BYTES))?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, node: &Node) -> Result<Flow, EvaluationError> {
        match node {
            Node::Text(part) => self.write(part)?,
            Node::Output(output) => {
                let value = output.evaluate(&self.environment, self.budget)?;
                let left = self.limit.saturating_sub(self.text.len());
                // Measured before it is written, so that an oversized value is never copied.
                self.budget
                    .measure(&value, left)
                    .ok_or(EvaluationError::TooLarge)?;
                push(&mut self.text, &value);
            }
            Node::Assign(name, output) => {
                let value = output.evaluate(&self.environment, self.budget)?;
                self.budget.charge(&value)?;
                let value = value.into_owned();
                self.environment.assign(name, value);
            }
            Node::Capture(name, body) => return self.capture(name, body),
            Node::If(branches, otherwise) => return self.branches(branches, otherwise),
            Node::Case(subject, arms, otherwise) => return self.case(subject, arms, otherwise),
            Node::For(head, body, otherwise) => return self.for_loop(head, body, otherwise),
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, part: &str) -> Result<(), EvaluationError> {
        if part.len() > self.limit.saturating_sub(self.text.len()) {
            return Err(EvaluationError::TooLarge);
        }
        self.text.push_str(part);
        Ok(())
    }

    fn capture(&mut self, name: &str, body: &[Node]) -> Result<Flow, EvaluationError> {
        let outer = std::mem::take(&mut self.text);
        let flow = self.render(body)?;
        let captured = Value::String(std::mem::replace(&mut self.text, outer));
        self.budget.charge(&captured)?;
        self.environment.assign(name, captured);
        Ok(flow)
    }

    fn branches(
        &mut self,
        branches: &[Branch],
        otherwise: &[Node],
    ) -> Result<Flow, EvaluationError> {
        for branch in branches {
            self.budget.charge_step()?;
            if branch.condition.holds(&self.environment, self.budget)? == branch.expected {
                return self.render(&branch.body);
            }
        }
        self.render(otherwise)
    }

    fn case(
        &mut self,
        subject: &Operand,
        arms: &[Arm],
        otherwise: &[Node],
    ) -> Result<Flow, EvaluationError> {
        for arm in arms {
            for value in &arm.values {
                self.budget.charge_step()?;
                self.budget.charge(&value.resolve(&self.environment))?;
                if are_equal(subject, value, &self.environment) {
                    return self.render(&arm.body);
                }
            }
        }
        self.render(otherwise)
    }

    fn for_loop(
        &mut self,
        head: &ForHead,
        body: &[Node],
        otherwise: &[Node],
    ) -> Result<Flow, EvaluationError> {
        let items = self.items(head)?;
        if items.is_empty() {
            return self.render(otherwise);
        }
        let length = items.len();
        for (position, item) in items.into_iter().enumerate() {
            self.budget.charge_step()?;
            let position = LoopPosition { position, length };
            self.environment.enter(&head.name, item, position);
            let flow = self.render(body);
            self.environment.leave();
            if flow? == Flow::Break {
                break;
            }
        }
        Ok(Flow::Next)
    }

    fn items(&mut self, head: &ForHead) -> Result<Vec<Value>, EvaluationError> {
        let offset = self.count(head.offset.as_ref())?.unwrap_or(0);
        let limit = self.count(head.limit.as_ref())?.unwrap_or(usize::MAX);
        let mut items = match &head.items {
            Items::Value(operand) => {
                let value = operand.resolve(&self.environment);
                self.budget.charge(&value)?;
                elements(&value, offset, limit)?
            }
            Items::Range(first, last) => {
                let first = self.integer(first)?;
                let last = self.integer(last)?;
                let numbers = (first..=last).skip(offset).take(limit);
                collect_iterations(numbers.map(Value::from))?
            }
        };
        if head.is_reversed {
            items.reverse();
        }
        Ok(items)
    }

    fn count(&self, operand: Option<&Operand>) -> Result<Option<usize>, EvaluationError> {
        let Some(operand) = operand else {
            return Ok(None);
        };
        let count = usize::try_from(self.integer(operand)?);
        count
            .map(Some)
            .map_err(|_| EvaluationError::BadArgument("for"))
    }

    fn integer(&self, operand: &Operand) -> Result<i64, EvaluationError> {
        let value = match &*operand.resolve(&self.environment) {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        value.ok_or(EvaluationError::BadArgument("for"))
    }
}

/// The items of a loop: list elements, object members as pairs, or a single text.
fn elements(value: &Value, offset: usize, limit: usize) -> Result<Vec<Value>, EvaluationError> {
    match value {
        Value::Array(list) => collect_iterations(list.iter().skip(offset).take(limit).cloned()),
        Value::Object(members) => {
            let pairs = members.iter().skip(offset).take(limit);
            collect_iterations(
                pairs.map(|(name, value)| vec![name.as_str().into(), value.clone()].into()),
            )
        }
        text if text.is_string() && !equal(text, &"".into()) => Ok(vec![text.clone()]),
        _ => Ok(Vec::new()),
    }
}

fn collect_iterations(items: impl Iterator<Item = Value>) -> Result<Vec<Value>, EvaluationError> {
    let items: Vec<_> = items.take(ITERATIONS_MAX + 1).collect();
    match items.len() > ITERATIONS_MAX {
        true => Err(EvaluationError::TooManyIterations),
        false => Ok(items),
    }
}

/// Appends a value to a text.
pub(crate) fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(part) => text.push_str(part),
        value => text.push_str(&value.to_string()),
    }
}
