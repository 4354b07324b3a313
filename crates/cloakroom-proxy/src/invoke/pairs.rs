//! Pairs of names and values in queries and form bodies. Pairs without an expression remain verbatim.

use std::borrow::Cow;

use cloakroom_expressions::Insertion;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use serde_json::Value;

use super::template::{contains_expression, value_text};

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A query or a form body with expressions in its values.
pub(super) struct Pairs(Vec<Pair>);

enum Pair {
    Verbatim(String),
    /// The name as it was sent, and the decoded value.
    Expression {
        name: String,
        value: String,
    },
}

impl Pairs {
    /// `None` if no value contains an expression.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let pair = |text: &str| match text.split_once('=') {
            Some((name, value)) => match decode(value) {
                value if contains_expression(&value) => Pair::Expression {
                    name: name.to_owned(),
                    value: value.into_owned(),
                },
                _ => Pair::Verbatim(text.to_owned()),
            },
            None => Pair::Verbatim(text.to_owned()),
        };
        let pairs: Vec<Pair> = text.split('&').map(pair).collect();
        let has_expression = |pair: &Pair| matches!(pair, Pair::Expression { .. });
        pairs.iter().any(has_expression).then_some(Self(pairs))
    }

    /// The values with expressions.
    pub(super) fn document(&self) -> Value {
        let values = self.0.iter().filter_map(|pair| match pair {
            Pair::Verbatim(_) => None,
            Pair::Expression { value, .. } => Some(value.as_str().into()),
        });
        Value::Array(values.collect())
    }

    /// Replaces the paths of the document's expressions, such as `query[0]`, by the names of their pairs.
    pub(super) fn name(&self, part: &str, place: &str, insertions: &mut [Insertion]) {
        let names = self.0.iter().filter_map(|pair| match pair {
            Pair::Verbatim(_) => None,
            Pair::Expression { name, .. } => Some(decode(name)),
        });
        for (index, name) in names.enumerate() {
            let path = format!("{part}[{index}]");
            let of_pair = insertions.iter_mut().filter(|it| it.path == path);
            of_pair.for_each(|it| it.path = format!("{place}.{name}"));
        }
    }

    /// The text with the values of `filled` in the places of their expressions.
    pub(super) fn render(&self, filled: &Value) -> String {
        let mut filled = filled.as_array().into_iter().flatten();
        let mut text = String::new();
        for pair in &self.0 {
            if !text.is_empty() {
                text.push('&');
            }
            match pair {
                Pair::Verbatim(pair) => text.push_str(pair),
                Pair::Expression { name, .. } => {
                    let value = filled.next().map(value_text).unwrap_or_default();
                    text.push_str(name);
                    text.push('=');
                    text.extend(utf8_percent_encode(&value, ENCODED));
                }
            }
        }
        text
    }
}

/// The decoded value of a parameter.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    Some(decode(value).into_owned())
}

/// A query without any parameter of this name.
pub(super) fn without_parameter(query: &str, name: &str) -> String {
    let is_other = |pair: &&str| pair.split('=').next() != Some(name);
    let pairs: Vec<&str> = query.split('&').filter(is_other).collect();
    pairs.join("&")
}

/// Decodes a value as forms encode it. Text that is not UTF-8 contains no expression and stays as it is.
fn decode(value: &str) -> Cow<'_, str> {
    let spaced = value.replace('+', " ");
    let decoded = percent_decode(spaced.as_bytes()).decode_utf8();
    match decoded {
        Ok(decoded) => Cow::Owned(decoded.into_owned()),
        Err(_) => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_replaced_and_encoded() {
        let filled = json!(["a b&c=d", 12, null]);
        let cases = [
            ("a={{ x }}", "a=a%20b%26c%3Dd"),
            ("a=%7B%7B+x+%7D%7D&b=1+2", "a=a%20b%26c%3Dd&b=1+2"),
            (
                "z&a={{x}}&b=%7b%7Bx%7d%7D&c={{x}}&&y=",
                "z&a=a%20b%26c%3Dd&b=12&c=&&y=",
            ),
        ];
        for (text, expected) in cases {
            let pairs = Pairs::parse(text).unwrap();
            assert_eq!(pairs.render(&filled), expected, "{text}");
        }
        for text in ["", "a=b", "{{ x }}", "a={{ x", "a=%ff%7B%7Bx%7D%7D"] {
            assert!(Pairs::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn parameters_are_removed_by_name() {
        for (query, expected) in [
            ("k=1", ""),
            ("a=1&k=2&b=3&k=4", "a=1&b=3"),
            ("k", ""),
            ("kk=1&a", "kk=1&a"),
        ] {
            assert_eq!(without_parameter(query, "k"), expected, "{query}");
        }
        assert_eq!(parameter("a=1&k=%41+b", "k").as_deref(), Some("A b"));
        assert_eq!(parameter("a=1", "k"), None);
    }
}
