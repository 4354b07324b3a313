//! `append_json`, `append_text` and `append_header`: add a value to a body or to the headers.

use cloakroom_platform::api::{FieldError, read_json};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::Reason;
use super::location::Location;
use super::template::{Template, Variables};

/// Headers that frame or route a message, act on the origin of the vault, or belong to the proxy itself.
const RESERVED_HEADERS: [&str; 18] = [
    "alt-svc",
    "clear-site-data",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];
const RESERVED_PREFIXES: [&str; 2] = ["access-control-", "bt-"];

#[derive(Debug)]
pub struct AppendJson {
    pub(super) value: Template,
    location: Location,
}

impl AppendJson {
    pub(super) fn compile(value: Template, location: &str) -> Result<Self, FieldError> {
        let location = Location::parse(location).ok_or_else(|| {
            let rule = "must be a JSON path to one value, such as $.card.token_id";
            FieldError::new("options.location", rule)
        })?;
        Ok(Self { value, location })
    }

    /// The body with the value at its location. An existing value is replaced.
    pub(super) fn apply(&self, variables: &Variables<'_>, body: &[u8]) -> Result<Vec<u8>, Reason> {
        let value = self.value.fill(variables)?;
        let mut root: Value = match body.is_empty() {
            true => Value::Null,
            false => read_json(body).map_err(|_| Reason::NotJson)?,
        };
        self.location.write(&mut root, value)?;
        serde_json::to_vec(&root).map_err(|_| Reason::NotJson)
    }
}

#[derive(Debug)]
pub struct AppendText {
    pub(super) value: Template,
}

impl AppendText {
    pub(super) fn apply(&self, variables: &Variables<'_>, body: &[u8]) -> Result<Vec<u8>, Reason> {
        let text = as_text(self.value.fill(variables)?);
        Ok([body, text.as_bytes()].concat())
    }
}

#[derive(Debug)]
pub struct AppendHeader {
    pub(super) value: Template,
    name: HeaderName,
}

impl AppendHeader {
    pub(super) fn compile(value: Template, name: &str) -> Result<Self, FieldError> {
        let reject = |rule| FieldError::new("options.location", rule);
        let name = HeaderName::try_from(name).map_err(|_| reject("must be a header name"))?;
        let is_reserved = RESERVED_HEADERS.contains(&name.as_str())
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix));
        match is_reserved {
            true => Err(reject("must not be a header that the proxy sets itself")),
            false => Ok(Self { value, name }),
        }
    }

    /// Sets the header. An existing one is replaced: of two, the reader may use the other.
    pub(super) fn apply(
        &self,
        variables: &Variables<'_>,
    ) -> Result<(HeaderName, HeaderValue), Reason> {
        let text = as_text(self.value.fill(variables)?);
        let value = HeaderValue::try_from(text).map_err(|_| Reason::HeaderValue)?;
        Ok((self.name.clone(), value))
    }
}

/// Inserts a header of a transform.
pub(super) fn insert(headers: &mut HeaderMap, (name, value): (HeaderName, HeaderValue)) {
    headers.insert(name, value);
}

fn as_text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        value => value.to_string(),
    }
}
