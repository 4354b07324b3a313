//! JSON paths in Goessner's dialect.

mod find;
mod parse;

use serde_json::Value;

/// A parsed path, relative to the root or to the current element of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    from_root: bool,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
struct Segment {
    /// A descendant segment (`..`), applied at every depth.
    is_descendant: bool,
    selectors: Vec<Selector>,
}

#[derive(Debug, Clone, PartialEq)]
enum Selector {
    Name(String),
    Index(i64),
    Slice(Slice),
    Wildcard,
    Filter(LogicalExpression),
}

#[derive(Debug, Clone, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
}

/// The expression of a filter selector.
#[derive(Debug, Clone, PartialEq)]
enum LogicalExpression {
    Any(Vec<LogicalExpression>),
    All(Vec<LogicalExpression>),
    Not(Box<LogicalExpression>),
    Exists(JsonPath),
    Compare(Comparable, Operator, Comparable),
}

#[derive(Debug, Clone, PartialEq)]
enum Comparable {
    Literal(Value),
    Path(JsonPath),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// The name of the member that the path leads to.
    pub(crate) fn member(&self) -> Option<&str> {
        match &self.segments.last()?.selectors[..] {
            [Selector::Name(name)] => Some(name),
            _ => None,
        }
    }

    /// Whether the path leads to one place, whatever the values are.
    pub(crate) fn is_fixed(&self) -> bool {
        let is_one = |segment: &Segment| {
            let selectors = &segment.selectors[..];
            !segment.is_descendant && matches!(selectors, [Selector::Name(_) | Selector::Index(_)])
        };
        self.segments.iter().all(is_one)
    }
}

#[cfg(test)]
mod tests;
