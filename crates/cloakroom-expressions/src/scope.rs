//! What an evaluation is given: variables, and what only the outside has.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Context;

/// The variables of an evaluation, and where it gets time, chance and keyed hashes from.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub variables: &'a [(&'a str, &'a Value)],
    pub sources: Sources<'a>,
}

/// What expressions may ask of the outside. A filter whose source is missing fails.
#[derive(Clone, Copy, Default)]
pub struct Sources<'a> {
    pub now: Option<Timestamp>,
    /// Fills the bytes with chance nobody can guess.
    pub random: Option<&'a Random<'a>>,
    pub hmac: Option<&'a Hmac<'a>>,
}

/// Fills bytes with chance.
pub type Random<'a> = dyn Fn(&mut [u8]) + 'a;

/// A keyed hash of a message: algorithm, key, message.
pub type Hmac<'a> = dyn Fn(HmacAlgorithm, &[u8], &[u8]) -> Vec<u8> + 'a;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacAlgorithm {
    Sha1,
    Sha256,
    Sha512,
}

impl<'a> Scope<'a> {
    /// Variables without sources.
    pub fn of(variables: &'a [(&'a str, &'a Value)]) -> Self {
        Self {
            variables,
            sources: Sources::default(),
        }
    }
}

/// The scope of one evaluation, with what its tags add to it.
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
    place: Place,
    /// What `forloop` stands for, once it is asked for.
    described: OnceCell<Value>,
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

    /// Looking up is paid for later, by whoever evaluates part after part.
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
            return Some(found.described.get_or_init(|| found.place.describe()));
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

    /// Goes into a loop, at the place of one item.
    pub(crate) fn enter(&mut self, name: &str, item: Value, place: Place) {
        self.loops.push(Loop {
            name: name.to_owned(),
            item,
            place,
            described: OnceCell::new(),
        });
    }

    pub(crate) fn leave(&mut self) {
        self.loops.pop();
    }
}

/// How far a loop is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) position: usize,
    pub(crate) length: usize,
}

impl Place {
    fn describe(self) -> Value {
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
