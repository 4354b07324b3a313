//! Expressions in the options of transforms, and the values they refer to.
//!
//! Transforms see the request as the caller sent it. Its expressions are not replaced, so no value that the vault revealed
//! to the destination returns to the caller through a transform.

use std::collections::HashMap;

use cloakroom_expressions::{Context, Document, Reference, ReferenceKind};
use cloakroom_platform::api::{FieldError, read_json};
use cloakroom_tokens::attributes::sources;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use super::{Configuration, Reason};
use crate::exchange::{BufferedResponse, Exchange};

/// What the expressions of a template may refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    variables: &'static [&'static str],
    configuration: bool,
}

impl Allowed {
    /// Values that the caller receives: neither configuration values nor decrypted data.
    pub(super) const IN_RETURNED_VALUES: Self = Self {
        variables: &["req", "res", "proxy"],
        configuration: false,
    };
    /// Values that the destination receives.
    pub(super) const IN_SENT_VALUES: Self = Self {
        variables: &["req", "proxy"],
        configuration: true,
    };
    pub(super) const IN_TOKENS_OF_REQUESTS: Self = Self {
        variables: &["req", "encrypted", "proxy"],
        configuration: false,
    };
    pub(super) const IN_TOKENS_OF_RESPONSES: Self = Self {
        variables: &["req", "res", "encrypted", "proxy"],
        configuration: false,
    };
}

/// A value whose strings contain expressions.
#[derive(Debug)]
pub(super) struct Template(Document);

impl Template {
    /// Parses a value; `identifiers` are those of earlier transforms.
    pub(super) fn parse(
        value: &Value,
        allowed: Allowed,
        identifiers: &[String],
    ) -> Result<Self, FieldError> {
        let document = Document::parse(Context::Transform, value).map_err(|error| {
            let rule = error.error.to_string();
            FieldError::new("body", rule).within(&error.path)
        })?;
        let mut references = document.references().iter();
        let rule = references.find_map(|reference| rejection(reference, allowed, identifiers));
        match rule {
            Some(rule) => Err(FieldError::new("body", rule)),
            None => Ok(Self(document)),
        }
    }

    pub(super) fn refers_to_configuration(&self) -> bool {
        let mut references = self.0.references().iter();
        references.any(|reference| reference.kind == ReferenceKind::Config)
    }

    pub(super) fn refers_to_encrypted(&self) -> bool {
        let mut references = self.0.references().iter();
        references.any(|reference| {
            let is_variable = !matches!(
                reference.kind,
                ReferenceKind::Config | ReferenceKind::TransformIdentifier
            );
            is_variable && Path::parse(&reference.id).is_some_and(|path| path.root == "encrypted")
        })
    }

    /// Replaces the expressions. A member that does not exist is null.
    pub(super) fn fill(&self, variables: &Variables<'_>) -> Result<Value, Reason> {
        let mut roots = HashMap::new();
        let mut values: HashMap<&Reference, Value> = HashMap::new();
        for reference in self.0.references() {
            if !values.contains_key(reference) {
                let value = variables.resolve(reference, &mut roots)?;
                values.insert(reference, value);
            }
        }
        let filled = self.0.fill(|reference| values.get(reference), &sources());
        filled.map_err(|error| Reason::Expression(error.to_string()))
    }
}

/// The rule that a reference violates. It names what the template may refer to, never the reference.
fn rejection(reference: &Reference, allowed: Allowed, identifiers: &[String]) -> Option<String> {
    match reference.kind {
        ReferenceKind::Config if allowed.configuration => None,
        ReferenceKind::Config => {
            Some("must not refer to config: only values sent to the destination may".to_owned())
        }
        ReferenceKind::TransformIdentifier => {
            let is_known = identifiers.contains(&reference.id);
            let rule = "must refer to the identifier of an earlier tokenize transform";
            (!is_known).then(|| rule.to_owned())
        }
        _ => {
            let is_known = Path::parse(&reference.id)
                .is_some_and(|path| allowed.variables.contains(&path.root));
            (!is_known).then(|| {
                let names = allowed.variables.join(", ");
                format!("must refer to one of {names}, or to a member such as req.card.number")
            })
        }
    }
}

/// A variable and the path to one of its members: `res.cards[0].number`.
struct Path<'a> {
    root: &'a str,
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

impl<'a> Path<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            steps.push(Step::Member(name));
            for index in indexes.split_inclusive(']') {
                let index = index.strip_prefix('[')?.strip_suffix(']')?;
                steps.push(Step::Element(index.parse().ok()?));
            }
        }
        let mut steps = steps.into_iter();
        match steps.next()? {
            Step::Member(root) => Some(Self {
                root,
                steps: steps.collect(),
            }),
            Step::Element(_) => None,
        }
    }

    fn find(&self, root: &Value) -> Value {
        let mut value = root;
        for step in &self.steps {
            let child = match step {
                Step::Member(name) => value.get(name),
                Step::Element(index) => value.get(index),
            };
            match child {
                Some(child) => value = child,
                None => return Value::Null,
            }
        }
        value.clone()
    }
}

/// What a template can refer to during an invocation.
pub(super) struct Variables<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) configuration: &'a Configuration,
    /// The response so far: earlier transforms may have changed it.
    pub(super) response: Option<&'a BufferedResponse>,
}

impl Variables<'_> {
    /// `roots` caches parsed bodies for the template.
    fn resolve(
        &self,
        reference: &Reference,
        roots: &mut HashMap<String, Value>,
    ) -> Result<Value, Reason> {
        let missing = || Reason::Expression("reference has no value".to_owned());
        match reference.kind {
            ReferenceKind::Config => {
                let value = self.configuration.get(&reference.id).ok_or_else(missing)?;
                Ok(Value::String(value.expose().clone()))
            }
            ReferenceKind::TransformIdentifier => {
                let mut created = self.exchange.created.iter();
                let found = created.find(|(identifier, _)| *identifier == reference.id);
                found.map(|(_, token)| token.clone()).ok_or_else(missing)
            }
            _ => {
                let path = Path::parse(&reference.id).ok_or_else(missing)?;
                if !roots.contains_key(path.root) {
                    roots.insert(path.root.to_owned(), self.root(path.root)?);
                }
                let root = roots.get(path.root).ok_or_else(missing)?;
                Ok(path.find(root))
            }
        }
    }

    fn root(&self, name: &str) -> Result<Value, Reason> {
        let received = &self.exchange.received;
        match (name, self.response) {
            ("req", _) => body_value(&received.headers, &received.body),
            ("res", Some(response)) => body_value(&response.headers, response.body.expose()),
            ("encrypted", _) => Ok(self.exchange.encrypted.clone().unwrap_or(Value::Null)),
            ("proxy", _) => Ok(json!({"request": self.request()?})),
            _ => Ok(Value::Null),
        }
    }

    /// The request as the caller sent it, without the headers that are for the vault.
    fn request(&self) -> Result<Value, Reason> {
        let received = &self.exchange.received;
        let mut headers = Map::new();
        for (name, value) in &received.headers {
            if !name.as_str().starts_with("bt-")
                && let Ok(text) = value.to_str()
            {
                headers.insert(name.as_str().to_owned(), text.into());
            }
        }
        Ok(json!({
            "method": received.method.as_str(),
            "path": received.suffix,
            "query": received.query,
            "headers": headers,
            "body": text(&received.body)?,
        }))
    }
}

/// JSON is parsed, everything else is text; an empty body is null.
fn body_value(headers: &HeaderMap, body: &[u8]) -> Result<Value, Reason> {
    match (body.is_empty(), is_json(headers)) {
        (true, _) => Ok(Value::Null),
        (false, true) => read_json(body).map_err(|_| Reason::NotJson),
        (false, false) => text(body).map(|text| text.into()),
    }
}

fn text(body: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(body).map_err(|_| Reason::NotText)
}

/// Whether the content type is JSON: `application/json` or a suffix `+json`.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| {
        let essence = essence.trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_members_and_elements() {
        let root = json!({"cards": [{"number": "1"}, {"number": "2"}], "a-b": {"c_d": 3}});
        let cases = [
            ("res.cards[1].number", Some(json!("2"))),
            ("res.a-b.c_d", Some(json!(3))),
            ("res.cards[2].number", Some(Value::Null)),
            ("res", Some(root.clone())),
            ("res.", None),
            ("res..a", None),
            ("res.cards[x]", None),
            ("res.cards[0", None),
            ("[0]", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = Path::parse(text).map(|path| path.find(&root));
            assert_eq!(found, expected, "{text}");
        }
    }
}
