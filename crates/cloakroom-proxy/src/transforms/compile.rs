//! Validates transforms, and compiles them for invocations.

use cloakroom_platform::api::FieldError;
use serde_json::Value;

use super::append::{AppendHeader, AppendJson, AppendText};
use super::body::{TransformBody, TransformOptionsBody, given};
use super::mask::Mask;
use super::template::{Allowed, Template};
use super::tokenize::Tokenize;

/// Bounds the cost of an invocation.
const TRANSFORMS_MAX: usize = 10;
/// Searching a body with an expression is the most expensive transform.
const MASKS_MAX: usize = 2;
const IDENTIFIER_CHARS_MAX: usize = 100;

/// A compiled transform.
#[derive(Debug)]
pub enum Transform {
    Mask(Mask),
    Tokenize(Tokenize),
    AppendJson(AppendJson),
    AppendText(AppendText),
    AppendHeader(AppendHeader),
}

impl Transform {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mask(_) => "mask",
            Self::Tokenize(_) => "tokenize",
            Self::AppendJson(_) => "append_json",
            Self::AppendText(_) => "append_text",
            Self::AppendHeader(_) => "append_header",
        }
    }

    /// Whether it inserts configuration values.
    pub fn refers_to_configuration(&self) -> bool {
        self.template()
            .is_some_and(Template::refers_to_configuration)
    }

    /// Whether it refers to the content of `BT-ENCRYPTED`.
    pub fn refers_to_encrypted(&self) -> bool {
        self.template().is_some_and(Template::refers_to_encrypted)
    }

    fn template(&self) -> Option<&Template> {
        match self {
            Self::Mask(_) => None,
            Self::Tokenize(tokenize) => Some(&tokenize.filled),
            Self::AppendJson(append) => Some(&append.value),
            Self::AppendText(append) => Some(&append.value),
            Self::AppendHeader(append) => Some(&append.value),
        }
    }
}

/// Whether a list transforms requests or responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Request,
    Response,
}

/// Why transforms are rejected.
#[derive(Debug)]
pub enum Rejection {
    /// A transform has code.
    NotBuilt,
    /// The paths are relative to the list: `[0].options.value`.
    Invalid(Vec<FieldError>),
}

/// Compiles a list of transforms. `identifiers` are those of the transforms that run before this list; those of this
/// list are added.
pub fn compile(
    direction: Direction,
    bodies: &[TransformBody],
    identifiers: &mut Vec<String>,
) -> Result<Vec<Transform>, Rejection> {
    if bodies
        .iter()
        .any(|body| given(body.code.as_ref()).is_some())
    {
        return Err(Rejection::NotBuilt);
    }
    let mut broken = Vec::new();
    if bodies.len() > TRANSFORMS_MAX {
        let rule = format!("must have at most {TRANSFORMS_MAX} entries");
        broken.push(FieldError::new("body", rule));
    }
    let mut transforms = Vec::with_capacity(bodies.len());
    for (index, body) in bodies.iter().enumerate() {
        match compile_one(direction, body, identifiers) {
            Ok(transform) => transforms.push(transform),
            Err(error) => broken.push(error.within(&format!("[{index}]"))),
        }
    }
    let masks = transforms
        .iter()
        .filter(|transform| matches!(transform, Transform::Mask(_)));
    if masks.count() > MASKS_MAX {
        let rule = format!("must have at most {MASKS_MAX} transforms of the type mask");
        broken.push(FieldError::new("body", rule));
    }
    match broken.is_empty() {
        true => Ok(transforms),
        false => Err(Rejection::Invalid(broken)),
    }
}

/// Whether a request transform inserts configuration values, or is not known to insert none.
pub fn refers_to_configuration(body: &TransformBody) -> bool {
    let options = body.options.as_ref();
    let value = options.and_then(|options| options.value.as_ref());
    let template = value.map(|value| Template::parse(value, Allowed::IN_SENT_VALUES, &[]));
    match template {
        None => false,
        Some(Ok(template)) => template.refers_to_configuration(),
        // With an identifier of an earlier transform, or invalid.
        Some(Err(_)) => true,
    }
}

fn compile_one(
    direction: Direction,
    body: &TransformBody,
    identifiers: &mut Vec<String>,
) -> Result<Transform, FieldError> {
    let kind = given(body.kind.as_ref());
    let default = TransformOptionsBody::default();
    let options = body.options.as_ref().unwrap_or(&default);
    if options.runtime.is_some() {
        let rule = "must not be given: it belongs to code transforms, which are not built";
        return Err(FieldError::new("options.runtime", rule));
    }
    if kind != Some("mask") {
        reject_mask_attributes(body)?;
    }
    let value = |allowed: Allowed| {
        let value = options.value.as_ref().filter(|value| !is_empty(value));
        let value = value.ok_or_else(|| FieldError::new("options.value", "is required"))?;
        Template::parse(value, allowed, identifiers).map_err(|error| error.within("options.value"))
    };
    let location = || {
        let location = given(options.location.as_ref());
        location.ok_or_else(|| FieldError::new("options.location", "is required"))
    };
    let appended = match direction {
        Direction::Request => Allowed::IN_SENT_VALUES,
        Direction::Response => Allowed::IN_RETURNED_VALUES,
    };
    Ok(match kind {
        Some("mask") if direction == Direction::Request => {
            let rule = "must not be `mask` for a request: only responses are masked";
            return Err(FieldError::new("type", rule));
        }
        Some("mask") => Transform::Mask(Mask::compile(body)?),
        Some("tokenize") => {
            let allowed = match direction {
                Direction::Request => Allowed::IN_TOKENS_OF_REQUESTS,
                Direction::Response => Allowed::IN_TOKENS_OF_RESPONSES,
            };
            let token = options.token.as_ref();
            let token = token.ok_or_else(|| FieldError::new("options.token", "is required"))?;
            let identifier = identifier(options, identifiers)?;
            let tokenize = Tokenize::compile(token, allowed, identifiers, identifier)
                .map_err(|error| error.within("options.token"))?;
            identifiers.extend(tokenize.identifier.clone());
            Transform::Tokenize(tokenize)
        }
        Some("append_json") => {
            Transform::AppendJson(AppendJson::compile(value(appended)?, location()?)?)
        }
        Some("append_text") => Transform::AppendText(AppendText {
            value: value(appended)?,
        }),
        Some("append_header") => {
            Transform::AppendHeader(AppendHeader::compile(value(appended)?, location()?)?)
        }
        _ => {
            let rule =
                "must be `mask`, `tokenize`, `append_json`, `append_text` or `append_header`";
            return Err(FieldError::new("type", rule));
        }
    })
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Null) || value.as_str() == Some("")
}

fn reject_mask_attributes(body: &TransformBody) -> Result<(), FieldError> {
    let attributes = [
        ("matcher", &body.matcher),
        ("expression", &body.expression),
        ("replacement", &body.replacement),
    ];
    match attributes
        .into_iter()
        .find(|(_, value)| given(value.as_ref()).is_some())
    {
        Some((name, _)) => Err(FieldError::new(
            name,
            "must not be given unless the type is `mask`",
        )),
        None => Ok(()),
    }
}

/// The identifier of a token, which no earlier transform has.
fn identifier(
    options: &TransformOptionsBody,
    identifiers: &[String],
) -> Result<Option<String>, FieldError> {
    let Some(identifier) = given(options.identifier.as_ref()) else {
        return Ok(None);
    };
    let reject = |rule: String| Err(FieldError::new("options.identifier", rule));
    let is_plain = |c: char| !c.is_control() && !"'\"{}|".contains(c);
    if identifier.chars().count() > IDENTIFIER_CHARS_MAX || !identifier.chars().all(is_plain) {
        return reject(format!(
            "must have at most {IDENTIFIER_CHARS_MAX} characters, without quotes, braces and bars"
        ));
    }
    if identifiers.iter().any(|known| known == identifier) {
        return reject("must differ from the identifiers of the other transforms".to_owned());
    }
    Ok(Some(identifier.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejected_path(direction: Direction, list: Value) -> String {
        let bodies: Vec<TransformBody> = serde_json::from_value(list).unwrap();
        match compile(direction, &bodies, &mut Vec::new()) {
            Ok(_) => "compiled".to_owned(),
            Err(Rejection::NotBuilt) => "not built".to_owned(),
            Err(Rejection::Invalid(broken)) => broken[0].path.clone(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one table of cases")]
    #[test]
    fn response_transforms_are_validated() {
        let mask = json!({"type": "mask", "matcher": "regex", "expression": "([0-9]{12})", "replacement": "*"});
        let tokenize = json!({"type": "tokenize", "options": {"identifier": "card", "token": {"type": "card",
            "data": {"number": "{{ res.number }}"}}}});
        let append = |kind: &str, value: Value, location: &str| json!({"type": kind, "options": {"value": value, "location": location}});
        let cases = [
            (json!([]), "compiled"),
            (json!([mask]), "compiled"),
            (json!([mask, mask, mask]), "body"),
            (
                json!([{"type": "code", "code": "module.exports = 1", "expression": "", "replacement": ""}]),
                "not built",
            ),
            (json!([{"code": "module.exports = 1"}]), "not built"),
            (json!([{"type": "code"}]), "[0].type"),
            (json!([{}]), "[0].type"),
            (
                json!([{"type": "mask", "code": "", "matcher": "regex", "expression": "([0-9]+)", "replacement": "*"}]),
                "compiled",
            ),
            (
                json!([{"type": "mask", "matcher": "regex", "expression": "[0-9]+", "replacement": "*"}]),
                "[0].expression",
            ),
            (
                json!([{"type": "mask", "matcher": "regex", "expression": "([0-9", "replacement": "*"}]),
                "[0].expression",
            ),
            (
                json!([{"type": "mask", "matcher": "regex", "expression": "(a{1000}{1000})", "replacement": "*"}]),
                "[0].expression",
            ),
            (
                json!([{"type": "mask", "matcher": "regex", "replacement": "*"}]),
                "[0].expression",
            ),
            (
                json!([{"type": "mask", "matcher": "regex", "expression": "(a)", "replacement": "**"}]),
                "[0].replacement",
            ),
            (
                json!([{"type": "mask", "matcher": "chase_stratus_pan", "replacement": "*"}]),
                "compiled",
            ),
            (
                json!([{"type": "mask", "matcher": "chase_stratus_pan", "expression": "(a)", "replacement": "*"}]),
                "[0].expression",
            ),
            (
                json!([{"type": "mask", "matcher": "all", "replacement": "*"}]),
                "[0].matcher",
            ),
            (json!([tokenize]), "compiled"),
            (json!([tokenize, tokenize]), "[1].options.identifier"),
            (
                json!([{"type": "tokenize", "code": "", "expression": "", "replacement": "", "options": {"token": {"type": "card", "data": "{{ res }}"}}}]),
                "compiled",
            ),
            (
                json!([{"type": "tokenize", "options": {}}]),
                "[0].options.token",
            ),
            (
                json!([{"type": "tokenize", "options": {"token": "card"}}]),
                "[0].options.token",
            ),
            (
                json!([{"type": "tokenize", "options": {"token": {"type": "card", "data": "{{ config: KEY }}"}}}]),
                "[0].options.token.data",
            ),
            (
                json!([append(
                    "append_json",
                    json!("{{ transform_identifier: 'card' | json: '$.id' }}"),
                    "$.id"
                )]),
                "[0].options.value",
            ),
            (
                json!([
                    tokenize,
                    append(
                        "append_json",
                        json!("{{ transform_identifier: 'card' | json: '$.id' }}"),
                        "$.id"
                    )
                ]),
                "compiled",
            ),
            (
                json!([append("append_json", json!("a"), "id")]),
                "[0].options.location",
            ),
            (
                json!([append("append_json", json!("a"), "$..id")]),
                "[0].options.location",
            ),
            (
                json!([append("append_json", json!(""), "$.id")]),
                "[0].options.value",
            ),
            (
                json!([append("append_text", json!("{{ req.a }}"), "")]),
                "compiled",
            ),
            (
                json!([append(
                    "append_text",
                    json!("{{ encrypted | json: '$.data' }}"),
                    ""
                )]),
                "[0].options.value",
            ),
            (
                json!([append("append_text", json!("{{ config: KEY }}"), "")]),
                "[0].options.value",
            ),
            (
                json!([append(
                    "append_text",
                    json!("{{ 4f7f4a5c-1c6b-4a3c-8a9c-3a7e2a1f0b7d }}"),
                    ""
                )]),
                "[0].options.value",
            ),
            (
                json!([append("append_text", json!("{{ token: abc }}"), "")]),
                "[0].options.value",
            ),
            (
                json!([append("append_header", json!("a"), "X-Token")]),
                "compiled",
            ),
            (
                json!([append("append_header", json!("a"), "Content-Length")]),
                "[0].options.location",
            ),
            (
                json!([append("append_header", json!("a"), "a b")]),
                "[0].options.location",
            ),
            (
                json!([{"type": "append_text", "options": {"value": "a", "runtime": {"timeout": 0}}}]),
                "[0].options.runtime",
            ),
            (
                json!([{"type": "append_text", "matcher": "regex", "options": {"value": "a"}}]),
                "[0].matcher",
            ),
        ];
        for (list, expected) in cases {
            assert_eq!(
                rejected_path(Direction::Response, list.clone()),
                expected,
                "{list}"
            );
        }
    }

    #[test]
    fn request_transforms_may_send_configuration_and_see_no_response() {
        let header = |value: &str| json!([{"type": "append_header", "options": {"value": value, "location": "Authorization"}}]);
        let cases = [
            (header("Bearer {{ config: KEY }}"), "compiled"),
            (header("{{ res.token }}"), "[0].options.value"),
            (
                json!([{"type": "mask", "matcher": "chase_stratus_pan", "replacement": "*"}]),
                "[0].type",
            ),
            (
                json!([{"type": "tokenize", "options": {"token": {"type": "card", "data": "{{ encrypted | json: '$.data' }}"}}}]),
                "compiled",
            ),
            (
                json!([{"type": "tokenize", "options": {"token": {"type": "card", "data": "{{ res.data }}"}}}]),
                "[0].options.token.data",
            ),
        ];
        for (list, expected) in cases {
            assert_eq!(
                rejected_path(Direction::Request, list.clone()),
                expected,
                "{list}"
            );
        }
    }
}
