//! `Document`: JSON whose strings contain references to tokens and other values.

mod braces;
mod filler;
mod piece;
mod reference;

use serde_json::Value;

use self::braces::{Inside, next_braces};
use self::filler::Filler;
pub use self::piece::{TextPiece, text_pieces};
pub use self::reference::{Reference, ReferenceKind};
use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::mask::{Step, path_text};
use crate::output::Filters;
use crate::scope::Environment;
use crate::{Context, EvaluationError, ParseError, Scope, Sources};

/// A parsed document. Keys, numbers, booleans, nulls and strings without braces are literals.
#[derive(Debug)]
pub struct Document {
    context: Context,
    root: Node,
    references: Vec<Reference>,
}

/// A parse or evaluation error, with its path in the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct DocumentError<E: std::fmt::Display = ParseError> {
    /// For example `cards[0].number`; empty for the document itself.
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

/// A reference, by its index, and the filters applied to its value.
#[derive(Debug)]
struct Output {
    reference: usize,
    filters: Filters,
}

/// The maximum depth of the JSON. A request body may be deeper than a mask.
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

    /// All references with duplicates, in document order.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The places of all expressions, in document order.
    pub fn insertions(&self) -> Vec<Insertion> {
        let mut insertions = Vec::new();
        let mut found = |path: &[Step<'_>], is_whole, output: &Output| {
            let is_request = self.references[output.reference].kind == ReferenceKind::Proxy;
            insertions.push(Insertion {
                path: path_text(path),
                is_whole,
                member: output.filters.selected_member(),
                only_selects: output.filters.only_select(),
                is_closed: match is_request {
                    true => output.filters.only_sign(),
                    false => output.filters.are_closed(),
                },
            });
        };
        collect(&self.root, &mut Vec::new(), &mut found);
        insertions
    }

    /// Like `fill_in`, but an expression that fails is null: no value decides whether the document can be filled.
    pub fn fill_totally<'v>(
        &self,
        scope: &Scope<'_>,
        value_of: impl Fn(&Reference) -> Option<&'v Value>,
    ) -> Result<Value, DocumentError<EvaluationError>> {
        self.filler(scope, value_of, true)
            .node(&self.root, &mut Vec::new())
    }

    /// Replaces references by their values. References inside of inserted values are not evaluated.
    pub fn fill<'v>(
        &self,
        value_of: impl Fn(&Reference) -> Option<&'v Value>,
        sources: &Sources<'_>,
    ) -> Result<Value, DocumentError<EvaluationError>> {
        let scope = Scope {
            variables: &[],
            sources: *sources,
        };
        self.fill_in(&scope, value_of)
    }

    /// Replaces references by their values, with variables for the arguments of filters.
    pub fn fill_in<'v>(
        &self,
        scope: &Scope<'_>,
        value_of: impl Fn(&Reference) -> Option<&'v Value>,
    ) -> Result<Value, DocumentError<EvaluationError>> {
        self.filler(scope, value_of, false)
            .node(&self.root, &mut Vec::new())
    }

    fn filler<'a, F>(&'a self, scope: &'a Scope<'_>, value_of: F, is_total: bool) -> Filler<'a, F> {
        Filler {
            references: &self.references,
            value_of,
            environment: Environment::new(self.context, scope),
            budget: Budget::default(),
            is_total,
        }
    }
}

/// An expression of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Insertion {
    /// For example `body.card.number`.
    pub path: String,
    /// Whether nothing is before or after the expression.
    pub is_whole: bool,
    /// The member of the value that the expression inserts.
    pub member: Option<String>,
    /// Whether the expression inserts the value as it is.
    pub only_selects: bool,
    /// Whether the expression consists of functions that the vault defines, which disclose nothing by failing.
    pub is_closed: bool,
}

/// Calls `found` with each output of a document and its path.
fn collect<'a>(
    node: &'a Node,
    path: &mut Vec<Step<'a>>,
    found: &mut impl FnMut(&[Step<'a>], bool, &Output),
) {
    match node {
        Node::Literal(_) => {}
        Node::Whole(output) => found(path, true, output),
        Node::Text(parts) => {
            for part in parts {
                if let Part::Output(output) = part {
                    found(path, false, output);
                }
            }
        }
        Node::Array(children) => {
            for (index, child) in children.iter().enumerate() {
                path.push(Step::Index(index));
                collect(child, path, found);
                path.pop();
            }
        }
        Node::Object(members) => {
            for (key, child) in members {
                path.push(Step::Key(key));
                collect(child, path, found);
                path.pop();
            }
        }
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
        // Whitespace around the braces makes the result text, even if it is trimmed.
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

fn at<E: std::fmt::Display>(path: &[Step<'_>], error: E) -> DocumentError<E> {
    DocumentError {
        path: path_text(path),
        error,
    }
}
