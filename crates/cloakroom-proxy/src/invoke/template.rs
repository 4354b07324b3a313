//! The parts of a request that contain expressions.
//!
//! Each becomes a JSON document of its expressions, and is rendered again from the document with values. Inserted
//! values are encoded for their place and never searched for expressions.

use bytes::Bytes;
use cloakroom_expressions::{
    Context, Document, DocumentError, Insertion, ParseError, Reference, TextPiece, text_pieces,
};
use cloakroom_platform::api::{FieldError, read_json};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::content::ContentKind;
use super::error::Error;
use super::pairs::Pairs;
use super::{headers, xml};
use crate::allowed_requests::AllowedRequests;

/// Maximum number of expressions in body, query and headers together.
const EXPRESSIONS_MAX: usize = 200;

const CLOSED_RULE: &str = "must be a value at a fixed path, with no other filters than last4, card_bin, card_exp, pad_left, \
     pad_right and to_string, or a signature with a configuration value: the application may use this data, but a rule that \
     reveals it is missing";

const JSON_RULE: &str = "must be JSON with the content type application/json: the proxy appends to it, and the application may use \
     this data, but a rule that reveals it is missing";

/// The expressions of a request.
pub(super) struct RequestTemplate {
    body: BodyTemplate,
    body_document: Document,
    query: Option<Pairs>,
    query_document: Document,
    /// Evaluated last: headers may contain a signature of the body.
    headers: Document,
}

impl RequestTemplate {
    /// `body` is `None` if it is streamed; its expressions are then not replaced.
    pub(super) fn parse(
        sent: &HeaderMap,
        query: Option<&str>,
        body: Option<&Bytes>,
    ) -> Result<Self, Error> {
        let kind = ContentKind::of(sent);
        let (body, body_value) = match body {
            Some(body) => BodyTemplate::parse(kind, body)?,
            None => (BodyTemplate::Verbatim, Value::Null),
        };
        let query = query.and_then(Pairs::parse);
        let query_value = query.as_ref().map(Pairs::document).unwrap_or_default();
        let template = Self {
            body,
            body_document: document("body", body_value)?,
            query,
            query_document: document("query", query_value)?,
            headers: document("headers", headers::document(sent))?,
        };
        match template.references().count() {
            0..=EXPRESSIONS_MAX => Ok(template),
            _ => Err(Error::TooManyExpressions(EXPRESSIONS_MAX)),
        }
    }

    /// The references of all expressions, with duplicates.
    pub(super) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.content_references().chain(self.header_references())
    }

    /// The references of body and query.
    pub(super) fn content_references(&self) -> impl Iterator<Item = &Reference> {
        let query = self.query_document.references();
        self.body_document.references().iter().chain(query)
    }

    pub(super) fn header_references(&self) -> &[Reference] {
        self.headers.references()
    }

    /// The expressions with their places: the name of the pair in a form or query, and no more than `body` in other text.
    fn insertions(&self) -> Vec<Insertion> {
        let mut in_body = self.body_document.insertions();
        let mut in_query = self.query_document.insertions();
        match &self.body {
            BodyTemplate::Verbatim | BodyTemplate::Json => {}
            BodyTemplate::Form(pairs) => pairs.name("body", "form", &mut in_body),
            BodyTemplate::Text(..) => in_body
                .iter_mut()
                .for_each(|it| it.path = "body".to_owned()),
        }
        if let Some(query) = &self.query {
            query.name("query", "query", &mut in_query);
        }
        let mut in_headers = self.headers.insertions();
        for insertion in &mut in_headers {
            // A header has a list of values.
            let end = insertion.path.rfind('[').unwrap_or(insertion.path.len());
            insertion.path.truncate(end);
        }
        let all = in_body.into_iter().chain(in_query);
        all.chain(in_headers).collect()
    }

    /// Requires that the proxy allows these expressions in their places.
    pub(super) fn require_allowed(&self, allowed: &AllowedRequests) -> Result<(), Error> {
        let mut insertions = self.insertions().into_iter();
        let other = insertions.find(|it| !allowed.allows_expression(it));
        other.map_or(Ok(()), |it| Err(Error::PlaceNotAllowed(it.path)))
    }

    /// Requires that a transform can read the body whatever the values are. The parser of another body would see them: two
    /// equal names, one of them a value, are an error.
    pub(super) fn require_json(&self) -> Result<(), Error> {
        match self.body {
            BodyTemplate::Verbatim | BodyTemplate::Json => Ok(()),
            _ => Err(Error::invalid_at("body", JSON_RULE)),
        }
    }

    /// Requires that the vault defines what every expression does. Decided by the text of the request alone: the failure of
    /// any other expression, or its value, could disclose data that the caller does not see.
    pub(super) fn require_closed(&self) -> Result<(), Error> {
        let open = self.insertions().into_iter().find(|it| !it.is_closed);
        open.map_or(Ok(()), |it| Err(Error::invalid_at(it.path, CLOSED_RULE)))
    }

    /// The body and the query with values in the places of their expressions; `None` for one without expressions.
    pub(super) fn render_content(
        &self,
        fill: impl Fn(&Document) -> Result<Value, Error>,
    ) -> Result<RenderedContent, Error> {
        let body = match self.body_document.references() {
            [] => None,
            _ => Some(self.body.render(&fill(&self.body_document)?["body"])?),
        };
        let query = match &self.query {
            None => None,
            Some(query) => Some(query.render(&fill(&self.query_document)?["query"])),
        };
        Ok(RenderedContent { body, query })
    }

    /// The headers with values in the places of their expressions.
    pub(super) fn render_headers(
        &self,
        fill: impl FnOnce(&Document) -> Result<Value, Error>,
    ) -> Result<Vec<(HeaderName, Vec<HeaderValue>)>, Error> {
        let filled = fill(&self.headers)?;
        headers::rendered(&filled["headers"])
    }
}

/// A document with one member, so that the paths of its errors start with the name of the part.
fn document(part: &str, value: Value) -> Result<Document, Error> {
    let mut members = Map::new();
    members.insert(part.to_owned(), value);
    Document::parse(Context::Proxy, &Value::Object(members)).map_err(invalid)
}

pub(super) struct RenderedContent {
    pub(super) body: Option<Vec<u8>>,
    pub(super) query: Option<String>,
}

/// How a body is rendered from its document.
enum BodyTemplate {
    /// Without expressions; sent as it is.
    Verbatim,
    Json,
    Form(Pairs),
    Text(Vec<BodyPiece>, ContentKind),
}

enum BodyPiece {
    Literal(Vec<u8>),
    /// Whether its place is inside of a CDATA section.
    Expression {
        is_in_cdata: bool,
    },
}

impl BodyTemplate {
    /// The template of a body, and the document with its expressions.
    fn parse(kind: ContentKind, body: &Bytes) -> Result<(Self, Value), Error> {
        if kind == ContentKind::Form {
            let text = std::str::from_utf8(body).ok();
            return Ok(match text.and_then(Pairs::parse) {
                Some(pairs) => {
                    let document = pairs.document();
                    (Self::Form(pairs), document)
                }
                None => (Self::Verbatim, Value::Null),
            });
        }
        if kind == ContentKind::Binary || !contains_braces(body) {
            return Ok((Self::Verbatim, Value::Null));
        }
        match kind {
            ContentKind::Json => Ok((Self::Json, read_json(body).map_err(Error::invalid)?)),
            ContentKind::Undeclared => match read_json(body) {
                Ok(value) => Ok((Self::Json, value)),
                Err(_) => Ok(text_template(kind, body)),
            },
            kind => Ok(text_template(kind, body)),
        }
    }

    fn render(&self, filled: &Value) -> Result<Vec<u8>, Error> {
        match self {
            Self::Verbatim => Ok(Vec::new()),
            Self::Json => {
                let text = serde_json::to_vec(filled);
                text.map_err(|_| Error::NotEvaluated)
            }
            Self::Form(pairs) => Ok(pairs.render(filled).into_bytes()),
            Self::Text(pieces, kind) => Ok(render_text(pieces, *kind, filled)),
        }
    }
}

/// Splits text into literals and expressions. Bytes that are not UTF-8 are literals.
fn text_template(kind: ContentKind, body: &[u8]) -> (BodyTemplate, Value) {
    let (mut pieces, mut expressions) = (Vec::new(), Vec::new());
    let mut is_in_cdata = false;
    for chunk in body.utf8_chunks() {
        for piece in text_pieces(chunk.valid()) {
            match piece {
                TextPiece::Text(text) => {
                    is_in_cdata = kind == ContentKind::Xml && xml::is_in_cdata(is_in_cdata, text);
                    pieces.push(BodyPiece::Literal(text.as_bytes().to_vec()));
                }
                TextPiece::Expression(text) => {
                    let text = match kind == ContentKind::Xml && !is_in_cdata {
                        true => xml::unescape(text),
                        false => text.to_owned(),
                    };
                    expressions.push(format!("{{{{{text}}}}}").into());
                    pieces.push(BodyPiece::Expression { is_in_cdata });
                }
            }
        }
        pieces.push(BodyPiece::Literal(chunk.invalid().to_vec()));
    }
    (BodyTemplate::Text(pieces, kind), Value::Array(expressions))
}

/// Values are changed where they do not fit, so that no value decides whether the request is sent.
fn render_text(pieces: &[BodyPiece], kind: ContentKind, filled: &Value) -> Vec<u8> {
    let mut filled = filled.as_array().into_iter().flatten();
    let mut body = Vec::new();
    for piece in pieces {
        match piece {
            BodyPiece::Literal(bytes) => body.extend_from_slice(bytes),
            BodyPiece::Expression { is_in_cdata } => {
                let value = filled.next().map(value_text).unwrap_or_default();
                let inserted = match (kind, is_in_cdata) {
                    (ContentKind::Xml, false) => xml::escape(&value),
                    (ContentKind::Xml, true) => xml::escape_cdata(&value),
                    // A line break could start another part.
                    (ContentKind::Multipart, _) => value.replace(['\r', '\n'], " "),
                    _ => value,
                };
                body.extend_from_slice(inserted.as_bytes());
            }
        }
    }
    body
}

/// Whether text contains a complete expression.
pub(super) fn contains_expression(text: &str) -> bool {
    text.split_once("{{")
        .is_some_and(|(_, rest)| rest.contains("}}"))
}

fn contains_braces(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"{{").is_some()
}

/// A value as text: null is empty, objects and arrays are JSON.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

pub(super) fn invalid(error: DocumentError<ParseError>) -> Error {
    Error::invalid(FieldError::new(error.path, error.error.to_string()))
}

/// A JSON object of arrays, from values by name.
pub(super) fn grouped(pairs: impl Iterator<Item = (String, Value)>) -> Value {
    let mut members = Map::new();
    for (name, value) in pairs {
        let values = members
            .entry(name)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(value);
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use serde_json::json;

    use super::*;

    fn rendered(media: Option<&str>, body: &str, value: &Value) -> Result<Vec<u8>, Error> {
        let mut headers = HeaderMap::new();
        if let Some(media) = media {
            headers.insert(CONTENT_TYPE, media.parse().unwrap());
        }
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        let template = RequestTemplate::parse(&headers, None, Some(&bytes))?;
        let fill = |document: &Document| {
            let filled = document.fill(|_| Some(value), &Default::default());
            Ok(filled.unwrap())
        };
        let rendered = template.render_content(fill)?.body;
        Ok(rendered.unwrap_or(bytes.to_vec()))
    }

    #[test]
    fn values_are_encoded_for_their_place() {
        let evil = json!("\"},<b>&=]]>\u{e9}");
        let cases = [
            (
                Some("application/json"),
                r#"{"a":"{{ x }}"}"#,
                "{\"a\":\"\\\"},<b>&=]]>\u{e9}\"}",
            ),
            (
                Some("application/json"),
                r#"{"a":"-{{ x }}-"}"#,
                "{\"a\":\"-\\\"},<b>&=]]>\u{e9}-\"}",
            ),
            (
                None,
                r#"{"a":"{{ x }}"}"#,
                "{\"a\":\"\\\"},<b>&=]]>\u{e9}\"}",
            ),
            (None, "a {{ x }}", "a \"},<b>&=]]>\u{e9}"),
            (
                Some("application/x-www-form-urlencoded"),
                "a=%7B%7B%20x%20%7D%7D&b=2",
                "a=%22%7D%2C%3Cb%3E%26%3D%5D%5D%3E%C3%A9&b=2",
            ),
            (
                Some("text/xml"),
                "<a b=\"{{ x }}\">{{ x }}</a>",
                "<a b=\"&quot;},&lt;b&gt;&amp;=]]&gt;\u{e9}\">&quot;},&lt;b&gt;&amp;=]]&gt;\u{e9}</a>",
            ),
            (
                Some("application/soap+xml"),
                "<a><![CDATA[{{ x }}]]></a>",
                "<a><![CDATA[]]><![CDATA[\"},<b>&=]]]]><![CDATA[>\u{e9}]]><![CDATA[]]></a>",
            ),
            (Some("text/plain"), "{{ x }}", "\"},<b>&=]]>\u{e9}"),
            (Some("image/png"), "{{ x }}", "{{ x }}"),
        ];
        for (media, body, expected) in cases {
            let rendered = rendered(media, body, &evil).unwrap();
            assert_eq!(String::from_utf8(rendered).unwrap(), expected, "{media:?}");
        }
    }

    #[test]
    fn json_values_keep_their_type() {
        let json = Some("application/json");
        let body = r#"{"a":"{{ x }}","b":"is {{ x }}","c":1.50}"#;
        for (value, expected) in [
            (json!(12), r#"{"a":12,"b":"is 12","c":1.50}"#),
            (json!(true), r#"{"a":true,"b":"is true","c":1.50}"#),
            (json!(null), r#"{"a":null,"b":"is ","c":1.50}"#),
            (
                json!({"d": [1]}),
                r#"{"a":{"d":[1]},"b":"is {\"d\":[1]}","c":1.50}"#,
            ),
        ] {
            let rendered = rendered(json, body, &value).unwrap();
            assert_eq!(String::from_utf8(rendered).unwrap(), expected);
        }
        // Without an expression, the body is not parsed.
        for body in ["{\"a\": 1 , \"a\":2}", "{", "{ {x} }"] {
            assert_eq!(rendered(json, body, &json!(1)).unwrap(), body.as_bytes());
        }
        assert!(rendered(json, "{\"a\": {{ x }} }", &json!(1)).is_err());
    }

    #[test]
    fn values_with_line_breaks_cannot_add_parts_to_a_multipart_body() {
        let media = Some("multipart/form-data; boundary=b");
        let body = "--b\r\n\r\n{{ x }}\r\n--b--";
        let rendered = rendered(media, body, &json!("1\r\n--b")).unwrap();
        assert_eq!(rendered, b"--b\r\n\r\n1  --b\r\n--b--");
    }

    #[test]
    fn the_number_of_expressions_is_limited() {
        for (count, expected) in [(200, true), (201, false)] {
            let body = "{{ x }}".repeat(count);
            assert_eq!(
                rendered(Some("text/plain"), &body, &json!(1)).is_ok(),
                expected
            );
        }
    }
}
