//! `Template`: text with outputs and tags in it, and the value it has for some data.

use serde_json::Value;

use crate::node::{self, Node};
use crate::render::{Renderer, push};
use crate::scope::{Environment, Scope};
use crate::work::Work;
use crate::{Context, EvaluationError, OUTPUT_BYTES_MAX, ParseError};

/// A parsed expression.
///
/// A template that is exactly one output keeps the JSON type of its value; anything else is text.
#[derive(Debug)]
pub struct Template {
    context: Context,
    nodes: Vec<Node>,
}

impl Template {
    pub fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let longest = context.text_characters_max();
        if text.chars().nth(longest).is_some() {
            return Err(ParseError::TooLong(longest));
        }
        let nodes = node::parse(context, text)?;
        Ok(Self { context, nodes })
    }

    /// Whether the value differs from one evaluation to the next, so that trying again may help.
    pub fn is_random(&self) -> bool {
        node::is_random(&self.nodes)
    }

    /// The value of this template; a missing variable is null, not an error.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, EvaluationError> {
        self.evaluate_within(scope, OUTPUT_BYTES_MAX, &mut Work::default())
            .map(|(value, _)| value)
    }

    /// The value as text, which is what ids, fingerprints and search indexes are made of.
    pub fn evaluate_to_text(&self, scope: &Scope<'_>) -> Result<String, EvaluationError> {
        let mut text = String::new();
        push(&mut text, &self.evaluate(scope)?);
        match text.is_empty() && self.context.needs_text() {
            true => Err(EvaluationError::Empty),
            false => Ok(text),
        }
    }

    /// Also tells how many bytes of the limit were used.
    pub(crate) fn evaluate_within(
        &self,
        scope: &Scope<'_>,
        limit: usize,
        work: &mut Work,
    ) -> Result<(Value, usize), EvaluationError> {
        let environment = Environment::new(self.context, scope);
        if let [Node::Output(output)] = &self.nodes[..] {
            work.step()?;
            // Measured before it is cloned: what is too large is never copied.
            let value = output.evaluate(&environment, work)?;
            let size = work
                .measure(&value, limit)
                .ok_or(EvaluationError::TooLarge)?;
            return Ok((value.into_owned(), size));
        }

        let mut renderer = Renderer {
            environment,
            work,
            text: String::new(),
            limit,
        };
        renderer.render(&self.nodes)?;
        let size = renderer.text.len();
        Ok((Value::String(renderer.text), size))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::TEXT_CHARACTERS_MAX;

    fn evaluate(text: &str, data: Value) -> Result<Value, EvaluationError> {
        let template = Template::parse(Context::Mask, text).unwrap();
        template.evaluate(&Scope::of(&[("data", &data)]))
    }

    #[test]
    fn one_output_keeps_its_type_and_anything_else_is_text() {
        let data = json!({ "n": 12, "d": 1.5, "t": true, "o": { "a": [1, null] }, "s": "x" });
        let cases = [
            ("{{ data.n }}", json!(12)),
            ("{{data.n}}", json!(12)),
            ("{{- data.n -}}", json!(12)),
            ("{{ data.d }}", json!(1.5)),
            ("{{ data.t }}", json!(true)),
            ("{{ data.o }}", json!({ "a": [1, null] })),
            ("{{ data.missing }}", json!(null)),
            ("{{ data }}", data.clone()),
            ("{{ 'text' }}", json!("text")),
            ("{{ 7 }}", json!(7)),
            (" {{ data.n }}", json!(" 12")),
            ("{{ data.n }} ", json!("12 ")),
            (" {{- data.n -}} ", json!("12")),
            ("a {{- data.n }} b", json!("a12 b")),
            ("a {{ data.n -}} b", json!("a 12b")),
            ("{{ data.n }}{{ data.s }}", json!("12x")),
            ("{{ data.n -}} {{ data.s }}", json!("12x")),
            ("<{{ data.missing }}>", json!("<>")),
            ("{{ data.o }}!", json!("{\"a\":[1,null]}!")),
            ("{{ data.t }}/{{ data.d }}", json!("true/1.5")),
            ("plain }} text {", json!("plain }} text {")),
            ("", json!("")),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluate(text, data.clone()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_tail_that_is_no_filter_yields_null() {
        let data = json!({ "number": "4242424242424242" });
        let cases = [
            ("{{ data.number, reveal_last: 4 }}", json!(null)),
            ("{{ data.number reveal_last: 4 }}", json!(null)),
            ("{{ data.number, reveal_last: 4 | last4 }}", json!(null)),
            ("{{ data.number. }}", json!(null)),
            ("{{ data.number[ }}", json!(null)),
            ("{{ data.number don't }}", json!(null)),
            ("card {{ data.number, last4 }}", json!("card ")),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluate(text, data.clone()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_says_why() {
        let cases = [
            ("{{ data | shout }}", "unknown filter `shout`"),
            ("{{ data | last4: 4 }}", "filter `last4` takes no arguments"),
            (
                "{{ data | reveal_last }}",
                "filter `reveal_last` takes a count and optionally a mask character",
            ),
            (
                "{{ data | reveal_last: 1, 'X', 3 }}",
                "filter `reveal_last` takes a count and optionally a mask character",
            ),
            (
                "{{ data | reveal_last: }}",
                "filter `reveal_last` is followed by something that is not an argument",
            ),
            (
                "{{ data | last4 junk }}",
                "filter `last4` is followed by something that is not an argument",
            ),
            (
                "{{ data | json_stringify | last4 }}",
                "filter `json_stringify` must be the last one",
            ),
            ("{{ data | '$.data' }}", "filter name missing after `|`"),
            ("{{ data | }}", "filter name missing after `|`"),
            ("{{ }}", "expression has no value between its braces"),
            (
                "{{ | last4 }}",
                "expression has no value between its braces",
            ),
            ("{{ 'open }}", "expression has no value between its braces"),
            (
                "a {{ data",
                "expression opens with `{{` and does not close with `}}`",
            ),
        ];
        for (text, message) in cases {
            let error = Template::parse(Context::Mask, text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    #[test]
    fn tags_that_cannot_be_parsed_say_why() {
        let cases = [
            ("{% if data %}", "tag `if` has no end"),
            (
                "{% if %}{% endif %}",
                "tag `if` is not written as it should be",
            ),
            (
                "{% if data %}{% elsif %}{% endif %}",
                "tag `elsif` is not written as it should be",
            ),
            (
                "{% if data %}{% endfor %}",
                "tag `endfor` stands where it does not belong",
            ),
            (
                "{{ data }}{% endif %}",
                "tag `endif` stands where it does not belong",
            ),
            ("{% break %}", "tag `break` stands where it does not belong"),
            (
                "{%- for x of data %}",
                "tag `for` is not written as it should be",
            ),
            (
                "{% assign = 1 %}",
                "tag `assign` is not written as it should be",
            ),
            ("{% render 'card' %}", "tag `render` is not supported"),
            ("{% include 'card' %}", "tag `include` is not supported"),
            ("{% # note %}", "tag `` is not supported"),
            (
                "{% if data",
                "tag opens with `{%` and does not close with `%}`",
            ),
            (
                "{{ data | hmac: 'sha-256', 'k' }}",
                "filter `hmac` must be followed by `to_base64` or `to_base16`",
            ),
            (
                "{{ data | hmac: 'sha-256', 'k' | upcase }}",
                "filter `hmac` must be followed by `to_base64` or `to_base16`",
            ),
            (
                "{{ data | json: 'data' }}",
                "filter `json` is given a path that is not a JSON path",
            ),
        ];
        for (text, message) in cases {
            let error = Template::parse(Context::Mask, text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    #[test]
    fn an_error_cuts_a_long_name() {
        let text = format!("{{{{ data | {} }}}}", "a".repeat(100));
        let error = Template::parse(Context::Mask, &text).unwrap_err();
        assert_eq!(error, ParseError::UnknownFilter("a".repeat(40)));
    }

    #[test]
    fn text_has_a_limit_in_characters() {
        assert!(Template::parse(Context::Mask, &"ä".repeat(TEXT_CHARACTERS_MAX)).is_ok());
        let error =
            Template::parse(Context::Mask, &"a".repeat(TEXT_CHARACTERS_MAX + 1)).unwrap_err();
        assert_eq!(error, ParseError::TooLong(TEXT_CHARACTERS_MAX));
    }

    #[test]
    fn results_have_a_limit() {
        let fits = json!("a".repeat(OUTPUT_BYTES_MAX));
        let exceeds = json!("a".repeat(OUTPUT_BYTES_MAX + 1));
        let many = json!(vec![0; OUTPUT_BYTES_MAX]);

        assert_eq!(evaluate("{{ data }}", fits.clone()), Ok(fits.clone()));
        for (text, data) in [
            ("{{ data }}", exceeds),
            ("{{ data }}!", fits.clone()),
            ("{{ data }}{{ data }}", fits),
            ("{{ data }}", many.clone()),
            ("{{ data | stringify }}", many),
        ] {
            assert_eq!(
                evaluate(text, data),
                Err(EvaluationError::TooLarge),
                "{text}"
            );
        }
    }
}
