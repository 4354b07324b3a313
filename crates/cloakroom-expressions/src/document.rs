//! `Document`: JSON whose strings refer to tokens and other values, to be filled in.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::cursor::Cursor;
use crate::mask::{Step, path_text};
use crate::output::Filters;
use crate::render::push;
use crate::scope::Environment;
use crate::work::Work;
use crate::{Context, EvaluationError, OUTPUT_BYTES_MAX, ParseError, Scope, Sources};

/// A parsed document. Keys, numbers, booleans, nulls and strings without braces stand for
/// themselves.
#[derive(Debug)]
pub struct Document {
    context: Context,
    root: Node,
    references: Vec<Reference>,
}

/// What a document wants to be filled in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// `token: ID`, the whole token.
    Token,
    /// `ID` alone, the data of a token.
    TokenData,
    TokenIntent,
    NetworkToken,
    ApplePay,
    GooglePay,
    Config,
}

const PREFIXES: [(&str, ReferenceKind); 6] = [
    ("token", ReferenceKind::Token),
    ("token_intent", ReferenceKind::TokenIntent),
    ("network_token", ReferenceKind::NetworkToken),
    ("apple_pay", ReferenceKind::ApplePay),
    ("google_pay", ReferenceKind::GooglePay),
    ("config", ReferenceKind::Config),
];

/// Why a JSON value is no document, or cannot be filled in, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct DocumentError<E: std::fmt::Display = ParseError> {
    /// As in `cards[0].number`; empty if the document itself is the culprit.
    pub path: String,
    pub error: E,
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Whole(Output),
    Text(Vec<Part>),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

#[derive(Debug)]
enum Part {
    Text(String),
    Output(Output),
}

/// A reference, by its position among all, and the filters its value passes through.
#[derive(Debug)]
struct Output {
    reference: usize,
    filters: Filters,
}

/// The deepest JSON that is walked; a request body may be deeper than a mask.
const JSON_DEPTH_MAX: usize = 128;

impl Document {
    pub fn parse(context: Context, document: &Value) -> Result<Self, DocumentError> {
        let mut parser = Parser {
            context,
            references: Vec::new(),
        };
        let root = parser.node(document, &mut Vec::new())?;
        Ok(Self {
            context,
            root,
            references: parser.references,
        })
    }

    /// Every reference as often as it occurs, in the order of the document.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The document with values in the place of references. What is filled in is not looked into
    /// for more references.
    pub fn fill<'v>(
        &self,
        value_of: impl Fn(&Reference) -> Option<&'v Value>,
        sources: &Sources<'_>,
    ) -> Result<Value, DocumentError<EvaluationError>> {
        let scope = Scope {
            variables: &[],
            sources: *sources,
        };
        let mut filler = Filler {
            references: &self.references,
            value_of,
            environment: Environment::new(self.context, &scope),
            work: Work::default(),
        };
        filler.node(&self.root, &mut Vec::new())
    }
}

struct Parser {
    context: Context,
    references: Vec<Reference>,
}

impl Parser {
    fn node<'a>(
        &mut self,
        value: &'a Value,
        path: &mut Vec<Step<'a>>,
    ) -> Result<Node, DocumentError> {
        if path.len() > JSON_DEPTH_MAX {
            return Err(at(path, ParseError::TooDeep));
        }
        Ok(match value {
            Value::String(text) => self.text(text).map_err(|error| at(path, error))?,
            Value::Array(children) => {
                let mut nodes = Vec::with_capacity(children.len());
                for (index, child) in children.iter().enumerate() {
                    path.push(Step::Index(index));
                    nodes.push(self.node(child, path)?);
                    path.pop();
                }
                Node::Array(nodes)
            }
            Value::Object(members) => {
                let mut nodes = Vec::with_capacity(members.len());
                for (key, child) in members {
                    path.push(Step::Key(key));
                    nodes.push((key.clone(), self.node(child, path)?));
                    path.pop();
                }
                Node::Object(nodes)
            }
            literal => Node::Literal(literal.clone()),
        })
    }

    fn text(&mut self, text: &str) -> Result<Node, ParseError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(found) = next_braces(rest) {
            if !found.before.is_empty() {
                parts.push(Part::Text(found.before.to_owned()));
            }
            match found.inside {
                Inside::Raw(raw) => parts.push(Part::Text(raw.to_owned())),
                Inside::Output(inner) => parts.push(Part::Output(self.output(inner)?)),
            }
            rest = found.rest;
        }
        if parts.is_empty() {
            return Ok(Node::Literal(text.into()));
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        // Whitespace around the braces makes the result text, also where it is trimmed.
        let is_whole = parts.len() == 1 && text.starts_with("{{") && text.ends_with("}}");
        Ok(match parts.pop() {
            Some(Part::Output(output)) if is_whole => Node::Whole(output),
            last => {
                parts.extend(last);
                Node::Text(parts)
            }
        })
    }

    fn output(&mut self, inner: &str) -> Result<Output, ParseError> {
        let longest = self.context.text_characters_max();
        if inner.chars().nth(longest).is_some() {
            return Err(ParseError::TooLong(longest));
        }
        let (name, filters) = inner.split_at(inner.find('|').unwrap_or(inner.len()));
        let reference = Reference::parse(self.context, name.trim())?;
        let filters = Filters::parse(self.context, &mut Cursor::new(filters))?;
        self.references.push(reference);
        Ok(Output {
            reference: self.references.len() - 1,
            filters,
        })
    }
}

impl Reference {
    /// A prefix selects the kind; anything else, also a literal, is the id of a token.
    fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let prefixed = text.split_once(':').and_then(|(prefix, id)| {
            let mut prefixes = PREFIXES.into_iter();
            let found = prefixes.find(|(name, _)| *name == prefix.trim_end());
            found.map(|(name, kind)| (name, kind, id.trim()))
        });
        let (name, kind, id) = prefixed.unwrap_or(("id", ReferenceKind::TokenData, text));
        if id.is_empty() {
            return Err(ParseError::NoValue);
        }
        if id.contains(['{', '}']) {
            return Err(ParseError::BadReference);
        }
        if !context.allows(kind) {
            return Err(ParseError::UnavailableReference(name));
        }
        Ok(Self {
            kind,
            id: id.to_owned(),
        })
    }
}

struct Braces<'a> {
    before: &'a str,
    inside: Inside<'a>,
    rest: &'a str,
}

enum Inside<'a> {
    Output(&'a str),
    Raw(&'a str),
}

/// The next complete output or raw text. Other tags, and braces that do not close, are plain text.
///
/// No part of the text is looked at again for the next call, whatever it holds: bodies are long.
fn next_braces(text: &str) -> Option<Braces<'_>> {
    for (at, _) in text.match_indices('{') {
        let (before, opened) = text.split_at(at);
        if let Some(opened) = opened.strip_prefix("{{") {
            return output_at(before, opened);
        }
        if let Some((raw, rest)) = raw_at(opened) {
            return Some(Braces {
                before,
                inside: Inside::Raw(raw),
                rest,
            });
        }
    }
    None
}

fn output_at<'a>(before: &'a str, opened: &'a str) -> Option<Braces<'a>> {
    let (inner, rest) = opened.split_once("}}")?;
    let (inner, before) = match inner.strip_prefix('-') {
        Some(inner) => (inner, before.trim_end()),
        None => (inner, before),
    };
    let (inner, rest) = match inner.strip_suffix('-') {
        Some(inner) => (inner, rest.trim_start()),
        None => (inner, rest),
    };
    Some(Braces {
        before,
        inside: Inside::Output(inner),
        rest,
    })
}

/// What stands between `{% raw %}`, if that is here, and the `{% endraw %}` that is the next tag.
fn raw_at(text: &str) -> Option<(&str, &str)> {
    let opened = strip_tag(text, "raw")?;
    let (raw, closing) = opened.split_at(opened.find("{%")?);
    Some((raw, strip_tag(closing, "endraw")?))
}

fn strip_tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let inner = text.strip_prefix("{%")?.trim_start();
    inner.strip_prefix(name)?.trim_start().strip_prefix("%}")
}

struct Filler<'a, F> {
    references: &'a [Reference],
    value_of: F,
    environment: Environment<'a>,
    work: Work,
}

impl<'v, F: Fn(&Reference) -> Option<&'v Value>> Filler<'_, F> {
    fn node<'n>(
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

    /// The text around references may be as long as it is; what is filled in has a limit.
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
        self.work.step()?;
        let value = (self.references.get(output.reference))
            .and_then(&self.value_of)
            .ok_or(EvaluationError::Unresolved)?;
        let start = Cow::Borrowed(value);
        let value = (output.filters).apply(start, &self.environment, &mut self.work)?;
        // Measured before it is cloned: what is too large is never copied.
        let size = self.work.measure(&value, *left);
        *left -= size.ok_or(EvaluationError::TooLarge)?;
        Ok(value.into_owned())
    }
}

fn at<E: std::fmt::Display>(path: &[Step<'_>], error: E) -> DocumentError<E> {
    DocumentError {
        path: path_text(path),
        error,
    }
}
