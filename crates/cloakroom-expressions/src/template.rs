//! `Template`: text with outputs in it, and the value it has for some data.

use serde_json::Value;

use crate::output::Output;
use crate::size::Work;
use crate::{EvaluationError, OUTPUT_BYTES_MAX, ParseError, TEXT_CHARACTERS_MAX};

/// A parsed expression.
///
/// A template that is exactly one output keeps the JSON type of its value; anything else is text.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Output(Output),
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.chars().nth(TEXT_CHARACTERS_MAX).is_some() {
            return Err(ParseError::TooLong);
        }

        let mut parts = Vec::new();
        let mut rest = text;
        let mut trim_next = false;
        while !rest.is_empty() {
            let start = find_braces(rest).unwrap_or(rest.len());
            let (mut before, opened) = rest.split_at(start);
            let output = parse_output(opened)?;
            if trim_next {
                before = before.trim_start();
            }
            if output.as_ref().is_some_and(|output| output.trim_before) {
                before = before.trim_end();
            }
            // A text that was trimmed to nothing stays: around it, the result is text all the same.
            if start > 0 {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some(found) = output else { break };
            parts.push(Part::Output(found.output));
            (rest, trim_next) = (found.rest, found.trim_after);
        }
        Ok(Self { parts })
    }

    /// The value of this template for `data`; a missing variable is null, not an error.
    pub fn evaluate(&self, data: &Value) -> Result<Value, EvaluationError> {
        self.evaluate_within(data, OUTPUT_BYTES_MAX, &mut Work::default())
            .map(|(value, _)| value)
    }

    /// Also tells how many bytes of the limit were used.
    pub(crate) fn evaluate_within(
        &self,
        data: &Value,
        limit: usize,
        work: &mut Work,
    ) -> Result<(Value, usize), EvaluationError> {
        if let [Part::Output(output)] = &self.parts[..] {
            // Measured before it is cloned: what is too large is never copied.
            let value = output.evaluate(data, work)?;
            let size = work
                .measure(&value, limit)
                .ok_or(EvaluationError::TooLarge)?;
            return Ok((value.into_owned(), size));
        }

        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Output(output) => {
                    let value = output.evaluate(data, work)?;
                    let left = limit.saturating_sub(text.len());
                    // Measured before it is written out, as above.
                    work.measure(&value, left)
                        .ok_or(EvaluationError::TooLarge)?;
                    push(&mut text, &value);
                }
            }
            if text.len() > limit {
                return Err(EvaluationError::TooLarge);
            }
        }
        let size = text.len();
        Ok((Value::String(text), size))
    }
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(part) => text.push_str(part),
        value => text.push_str(&value.to_string()),
    }
}

struct Found<'a> {
    output: Output,
    trim_before: bool,
    trim_after: bool,
    rest: &'a str,
}

/// Where the next output or tag starts.
fn find_braces(text: &str) -> Option<usize> {
    match (text.find("{{"), text.find("{%")) {
        (Some(output), Some(tag)) => Some(output.min(tag)),
        (output, tag) => output.or(tag),
    }
}

/// Parses the output at the start of `text`, which is empty at the end of the template.
fn parse_output(text: &str) -> Result<Option<Found<'_>>, ParseError> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some(inner) = text.strip_prefix("{{") else {
        return Err(unsupported_tag(text));
    };
    let (inner, rest) = inner.split_once("}}").ok_or(ParseError::Unclosed)?;
    let (inner, trim_before) = strip(inner, inner.strip_prefix('-'));
    let (inner, trim_after) = strip(inner, inner.strip_suffix('-'));
    Ok(Some(Found {
        output: Output::parse(inner)?,
        trim_before,
        trim_after,
        rest,
    }))
}

fn strip<'a>(text: &'a str, stripped: Option<&'a str>) -> (&'a str, bool) {
    (stripped.unwrap_or(text), stripped.is_some())
}

fn unsupported_tag(text: &str) -> ParseError {
    let name = text.trim_start_matches(['{', '%', '-']).trim_start();
    let name = name.chars().take_while(char::is_ascii_alphabetic).take(20);
    ParseError::UnsupportedTag(name.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(text: &str, data: Value) -> Result<Value, EvaluationError> {
        Template::parse(text).unwrap().evaluate(&data)
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
            ("{% if data %}", "tag `if` is not supported"),
            ("{% if data %}{{ data }}", "tag `if` is not supported"),
            ("{%- for x in data %}", "tag `for` is not supported"),
            ("{{ data }}{% endif %}", "tag `endif` is not supported"),
        ];
        for (text, message) in cases {
            let error = Template::parse(text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    #[test]
    fn an_error_cuts_a_long_name() {
        let text = format!("{{{{ data | {} }}}}", "a".repeat(100));
        let error = Template::parse(&text).unwrap_err();
        assert_eq!(error, ParseError::UnknownFilter("a".repeat(40)));
    }

    #[test]
    fn text_has_a_limit_in_characters() {
        assert!(Template::parse(&"ä".repeat(TEXT_CHARACTERS_MAX)).is_ok());
        let error = Template::parse(&"a".repeat(TEXT_CHARACTERS_MAX + 1)).unwrap_err();
        assert_eq!(error, ParseError::TooLong);
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
