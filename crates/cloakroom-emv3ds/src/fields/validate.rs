//! Validates a message against its field table.

use serde_json::{Map, Value};

use super::condition::Context;
use super::{Field, Format, constraints, fields};
use crate::messages::MessageKind;
use crate::parse::join;

/// How to treat fields that are not defined for the message's version and device channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    /// For received messages: the sender may support later versions.
    Ignore,
    /// For messages to send.
    Reject,
}

/// Paths of invalid fields.
#[derive(Default)]
pub(crate) struct FieldErrors {
    pub(crate) missing: Vec<String>,
    pub(crate) malformed: Vec<String>,
}

/// Replaces field names that are in no table: they come from the sender and may hold any data.
const UNKNOWN_FIELD: &str = "(unknown field)";

/// Returns the fields that are defined in the message's table, and the errors found.
pub(crate) fn validate(
    kind: MessageKind,
    context: &Context<'_>,
    unknown_fields: UnknownFields,
) -> (Map<String, Value>, FieldErrors) {
    let mut validator = Validator {
        kind,
        context,
        unknown_fields,
        errors: FieldErrors::default(),
    };
    let known = validator.object("", context.message);
    for constraint in constraints(kind) {
        let applies = context.version <= constraint.until && constraint.when.holds(context);
        let value = context.message.get(constraint.path).and_then(Value::as_str);
        if applies && value.is_some_and(|text| !constraint.one_of.contains(&text)) {
            validator.malformed(constraint.path);
        }
    }
    (known, validator.errors)
}

/// The path, or its longest prefix that is in the table.
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

struct Validator<'a> {
    kind: MessageKind,
    context: &'a Context<'a>,
    unknown_fields: UnknownFields,
    errors: FieldErrors,
}

impl Validator<'_> {
    fn object(&mut self, parent: &str, object: &Map<String, Value>) -> Map<String, Value> {
        let context = self.context;
        let here = fields(self.kind).filter(|row| row.parent() == parent);
        let rows: Vec<_> = here
            .filter(|row| row.applies(context.version, context.channel))
            .collect();
        let absent = |row: &&&Field| !object.contains_key(row.name());
        let missing = rows
            .iter()
            .filter(absent)
            .filter(|row| row.inclusion.requires(context));
        self.errors
            .missing
            .extend(missing.map(|row| row.path.to_owned()));
        let mut known = Map::new();
        for (name, value) in object {
            if let Some(row) = rows.iter().find(|row| row.name() == name) {
                known.insert(name.clone(), self.value(row.path, &row.format, value));
            } else if self.unknown_fields == UnknownFields::Reject
                && join(parent, name) != "messageType"
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

    /// Validates a nested object. An object without any known field is as invalid as an empty one.
    fn inner(&mut self, path: &str, object: &Map<String, Value>) -> Value {
        let known = self.object(path, object);
        if known.is_empty() {
            self.malformed(path);
        }
        Value::Object(known)
    }

    fn malformed(&mut self, path: &str) {
        self.errors.malformed.push(path.to_owned());
    }
}
