//! The environment of an evaluation: variables and external sources.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Context;

/// The variables of an evaluation, and its sources of time, randomness and HMAC.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub variables: &'a [(&'a str, &'a Value)],
    pub sources: Sources<'a>,
}

/// External sources. A filter whose source is missing fails.
#[derive(Clone, Copy, Default)]
pub struct Sources<'a> {
    pub now: Option<Timestamp>,
    /// Fills the buffer with cryptographically secure random bytes.
    pub random: Option<&'a Random<'a>>,
    pub hmac: Option<&'a Hmac<'a>>,
}

/// Fills a buffer with random bytes.
pub type Random<'a> = dyn Fn(&mut [u8]) + 'a;

/// Computes an HMAC: algorithm, key, message.
pub type Hmac<'a> = dyn Fn(HmacAlgorithm, &[u8], &[u8]) -> Vec<u8> + 'a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacAlgorithm {
    Sha1,
    Sha256,
    Sha512,
}

impl<'a> Scope<'a> {
    /// A scope without sources.
    pub fn of(variables: &'a [(&'a str, &'a Value)]) -> Self {
        Self {
            variables,
            sources: Sources::default(),
        }
    }
}

/// The state of one evaluation: its scope, assigned variables and loops.
pub(crate) struct Environment<'a> {
    context: Context,
    scope: Scope<'a>,
    assigned: HashMap<String, Value>,
    loops: Vec<Loop>,
    lookups: Cell<usize>,
}

struct Loop {
    name: String,
    item: Value,
    position: LoopPosition,
    /// The `forloop` object, created on first use.
    forloop: OnceCell<Value>,
}

impl<'a> Environment<'a> {
    pub(crate) fn new(context: Context, scope: &Scope<'a>) -> Self {
        Self {
            context,
            scope: *scope,
            assigned: HashMap::new(),
            loops: Vec::new(),
            lookups: Cell::new(0),
        }
    }

    pub(crate) fn sources(&self) -> &Sources<'a> {
        &self.scope.sources
    }

    /// Counts lookups; the renderer charges for them after each node.
    pub(crate) fn count_lookups(&self, count: usize) {
        self.lookups.set(self.lookups.get().saturating_add(count));
    }

    pub(crate) fn take_lookups(&self) -> usize {
        self.lookups.take()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Value> {
        if let Some(found) = self.loops.iter().rev().find(|inner| inner.name == name) {
            return Some(&found.item);
        }
        if let Some(found) = self.loops.last().filter(|_| name == "forloop") {
            return Some(found.forloop.get_or_init(|| found.position.to_forloop()));
        }
        if let Some(value) = self.assigned.get(name) {
            return Some(value);
        }
        if !self.context.variables().contains(&name) {
            return None;
        }
        let mut variables = self.scope.variables.iter();
        let (_, value) = variables.find(|(known, _)| *known == name)?;
        Some(value)
    }

    pub(crate) fn assign(&mut self, name: &str, value: Value) {
        self.assigned.insert(name.to_owned(), value);
    }

    /// Enters an iteration of a loop.
    pub(crate) fn enter(&mut self, name: &str, item: Value, position: LoopPosition) {
        self.loops.push(Loop {
            name: name.to_owned(),
            item,
            position,
            forloop: OnceCell::new(),
        });
    }

    pub(crate) fn leave(&mut self) {
        self.loops.pop();
    }
}

/// The position of a loop.
#[derive(Clone, Copy)]
pub(crate) struct LoopPosition {
    pub(crate) position: usize,
    pub(crate) length: usize,
}

impl LoopPosition {
    fn to_forloop(self) -> Value {
        let left = self.length - self.position;
        json!({
            "index": self.position + 1,
            "index0": self.position,
            "rindex": left,
            "rindex0": left - 1,
            "first": self.position == 0,
            "last": left == 1,
            "length": self.length,
        })
    }
}
