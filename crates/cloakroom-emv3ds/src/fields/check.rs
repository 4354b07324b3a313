//! A message held against its table.

use serde_json::{Map, Value};

use super::condition::Facts;
use super::{Field, Format, constraints, fields};
use crate::messages::MessageKind;
use crate::parse::join;

/// What happens to a field that a message of this version and channel does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It is left out: others may be ahead of us.
    Reading,
    /// It is wrong: we would not send what nobody expects.
    Writing,
}

/// The paths of fields that are not as they should be.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) missing: Vec<String>,
    pub(crate) malformed: Vec<String>,
}

/// In place of a name that no table has: it came from outside and could be anything.
const UNKNOWN_FIELD: &str = "(unknown field)";

/// The fields that the message has according to its table, and what is wrong with them.
pub(crate) fn check(
    kind: MessageKind,
    facts: &Facts<'_>,
    strictness: Strictness,
) -> (Map<String, Value>, Findings) {
    let mut walk = Walk {
        kind,
        facts,
        strictness,
        findings: Findings::default(),
    };
    let known = walk.object("", facts.message);
    for constraint in constraints(kind) {
        let bound = facts.version <= constraint.until && constraint.when.holds(facts);
        let value = facts.message.get(constraint.path).and_then(Value::as_str);
        if bound && value.is_some_and(|text| !constraint.one_of.contains(&text)) {
            walk.malformed(constraint.path);
        }
    }
    (known, walk.findings)
}

/// The path, or as much of it as a table has.
pub(crate) fn known_path(kind: MessageKind, path: &str) -> &str {
    let mut rest = path;
    loop {
        if rest == "messageType" || fields(kind).any(|row| row.path == rest) {
            return rest;
        }
        match rest.rsplit_once('.') {
            Some((parent, _)) => rest = parent,
            None => return UNKNOWN_FIELD,
        }
    }
}

struct Walk<'a> {
    kind: MessageKind,
    facts: &'a Facts<'a>,
    strictness: Strictness,
    findings: Findings,
}

impl Walk<'_> {
    fn object(&mut self, parent: &str, object: &Map<String, Value>) -> Map<String, Value> {
        let facts = self.facts;
        let here = fields(self.kind).filter(|row| row.parent() == parent);
        let rows: Vec<_> = here
            .filter(|row| row.applies(facts.version, facts.channel))
            .collect();
        let absent = |row: &&&Field| !object.contains_key(row.name());
        let missing = rows
            .iter()
            .filter(absent)
            .filter(|row| row.inclusion.requires(facts));
        self.findings
            .missing
            .extend(missing.map(|row| row.path.to_owned()));
        let mut known = Map::new();
        for (name, value) in object {
            if let Some(row) = rows.iter().find(|row| row.name() == name) {
                known.insert(name.clone(), self.value(row.path, &row.format, value));
            } else if self.strictness == Strictness::Writing && join(parent, name) != "messageType"
            {
                let path = join(parent, name);
                let path = if fields(self.kind).any(|row| row.path == path) {
                    path
                } else {
                    join(parent, UNKNOWN_FIELD)
                };
                self.malformed(&path);
            }
        }
        known
    }

    fn value(&mut self, path: &str, format: &Format, value: &Value) -> Value {
        if !format.accepts(value) {
            self.malformed(path);
            return Value::Null;
        }
        match (format, value) {
            (Format::Object, Value::Object(object)) => self.inner(path, object),
            (Format::Objects { .. }, Value::Array(elements)) => elements
                .iter()
                .filter_map(Value::as_object)
                .map(|element| self.inner(path, element))
                .collect(),
            _ => value.clone(),
        }
    }

    /// An object of which nothing is known is as good as an empty one.
    fn inner(&mut self, path: &str, object: &Map<String, Value>) -> Value {
        let known = self.object(path, object);
        if known.is_empty() {
            self.malformed(path);
        }
        Value::Object(known)
    }

    fn malformed(&mut self, path: &str) {
        self.findings.malformed.push(path.to_owned());
    }
}
