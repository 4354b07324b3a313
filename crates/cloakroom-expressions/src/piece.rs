//! Splits the text of a template into plain text, outputs and tags.

use crate::ParseError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// The text between `{{` and `}}`.
    Output(&'a str),
    /// A tag's name and the rest of the text between `{%` and `%}`.
    Tag(&'a str, &'a str),
}

/// Splits `text`. Applies whitespace control (`{{-`, `-%}`) and removes comments.
pub(crate) fn split(text: &str) -> Result<Vec<Piece<'_>>, ParseError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut trim_next = false;
    while !rest.is_empty() {
        let start = find_delimiter(rest).unwrap_or(rest.len());
        let (before, opened) = rest.split_at(start);
        let found = match opened {
            "" => None,
            opened => Some(parse_delimited(opened)?),
        };
        if !before.is_empty() {
            // Text that is trimmed to an empty string stays, because it makes the result text.
            let trim_end = found.as_ref().is_some_and(|found| found.trims_before);
            pieces.push(Piece::Text(trim(before, trim_next, trim_end)));
        }
        let Some(found) = found else { break };
        (rest, trim_next) = (found.rest, found.trims_after);
        match found.piece {
            Piece::Tag("raw", _) => {
                let (raw, end) = verbatim("raw", "endraw", rest)?;
                pieces.push(Piece::Text(raw));
                (rest, trim_next) = (end.rest, end.trims_after);
            }
            Piece::Tag("comment", _) => {
                let (_, end) = verbatim("comment", "endcomment", rest)?;
                pieces.push(Piece::Text(""));
                (rest, trim_next) = (end.rest, end.trims_after);
            }
            piece => pieces.push(piece),
        }
    }
    Ok(pieces)
}

struct Delimited<'a> {
    piece: Piece<'a>,
    trims_before: bool,
    trims_after: bool,
    rest: &'a str,
}

/// The start of the next output or tag.
fn find_delimiter(text: &str) -> Option<usize> {
    match (text.find("{{"), text.find("{%")) {
        (Some(output), Some(tag)) => Some(output.min(tag)),
        (output, tag) => output.or(tag),
    }
}

/// Parses the output or tag at the start of `text`.
fn parse_delimited(text: &str) -> Result<Delimited<'_>, ParseError> {
    let (inner, rest, is_tag) = match text.strip_prefix("{{") {
        Some(inner) => {
            let (inner, rest) = inner.split_once("}}").ok_or(ParseError::Unclosed)?;
            (inner, rest, false)
        }
        None => {
            let inner = text.strip_prefix("{%").unwrap_or(text);
            let (inner, rest) = inner.split_once("%}").ok_or(ParseError::UnclosedTag)?;
            (inner, rest, true)
        }
    };
    let (inner, trims_before) = strip(inner, inner.strip_prefix('-'));
    let (inner, trims_after) = strip(inner, inner.strip_suffix('-'));
    let piece = match is_tag {
        true => parse_tag(inner.trim()),
        false => Piece::Output(inner),
    };
    Ok(Delimited {
        piece,
        trims_before,
        trims_after,
        rest,
    })
}

fn parse_tag(text: &str) -> Piece<'_> {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    Piece::Tag(name, rest.trim())
}

/// The unparsed text before the tag `end`, and that tag.
fn verbatim<'a>(
    name: &'static str,
    end: &str,
    text: &'a str,
) -> Result<(&'a str, Delimited<'a>), ParseError> {
    let mut searched = 0;
    while let Some(at) = text[searched..].find("{%") {
        let start = searched + at;
        let found = parse_delimited(&text[start..]).map_err(|_| ParseError::NoEnd(name))?;
        if matches!(found.piece, Piece::Tag(name, "") if name == end) {
            let before = trim(&text[..start], false, found.trims_before);
            return Ok((before, found));
        }
        searched = start + 2;
    }
    Err(ParseError::NoEnd(name))
}

fn trim(text: &str, start: bool, end: bool) -> &str {
    let text = if start { text.trim_start() } else { text };
    if end { text.trim_end() } else { text }
}

fn strip<'a>(text: &'a str, stripped: Option<&'a str>) -> (&'a str, bool) {
    (stripped.unwrap_or(text), stripped.is_some())
}

#[cfg(test)]
mod tests {
    use super::Piece::{Output, Tag, Text};
    use super::*;

    #[test]
    fn templates_are_split_into_text_outputs_and_tags() {
        let cases = [
            ("", vec![]),
            ("a }} b %} {", vec![Text("a }} b %} {")]),
            ("{{x}}", vec![Output("x")]),
            (" {{- x -}} y", vec![Text(""), Output(" x "), Text("y")]),
            (
                "a {%- if x -%} b",
                vec![Text("a"), Tag("if", "x"), Text("b")],
            ),
            ("{%else%}", vec![Tag("else", "")]),
            (
                "{% raw %} {{ a }} {% b %} {% endraw %}c",
                vec![Text(" {{ a }} {% b %} "), Text("c")],
            ),
            (
                "{% comment %}{{ secret }}{% endcomment %}c",
                vec![Text(""), Text("c")],
            ),
        ];
        for (text, pieces) in cases {
            assert_eq!(split(text), Ok(pieces), "{text}");
        }
    }

    #[test]
    fn unclosed_delimiters_are_rejected() {
        let cases = [
            ("{{ a", ParseError::Unclosed),
            ("{% if", ParseError::UnclosedTag),
            ("{% raw %} {% endcomment %}", ParseError::NoEnd("raw")),
            ("{% comment %} {%", ParseError::NoEnd("comment")),
        ];
        for (text, error) in cases {
            assert_eq!(split(text), Err(error), "{text}");
        }
    }
}
