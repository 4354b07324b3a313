//! Text split into expressions and the text between them, for formats that escape inserted values.

use super::braces::{Inside, next_braces};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPiece<'a> {
    /// Text outside of expressions, or the content of a raw block.
    Text(&'a str),
    /// The inside of `{{ … }}`.
    Expression(&'a str),
}

/// Splits text as [`Document`](super::Document) does.
pub fn text_pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(found) = next_braces(rest) {
        if !found.before.is_empty() {
            pieces.push(TextPiece::Text(found.before));
        }
        pieces.push(match found.inside {
            Inside::Raw(raw) => TextPiece::Text(raw),
            Inside::Output(inner) => TextPiece::Expression(inner),
        });
        rest = found.rest;
    }
    if !rest.is_empty() {
        pieces.push(TextPiece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::TextPiece::{Expression, Text};
    use super::*;

    #[test]
    fn text_is_split_at_expressions_and_raw_blocks() {
        let cases: [(&str, &[TextPiece<'_>]); 6] = [
            ("", &[]),
            ("<a>", &[Text("<a>")]),
            ("{{ a }}", &[Expression(" a ")]),
            (
                "x {{ a }}{{b}} y",
                &[Text("x "), Expression(" a "), Expression("b"), Text(" y")],
            ),
            ("{% raw %}{{ a }}{% endraw %}", &[Text("{{ a }}")]),
            ("{{ a", &[Text("{{ a")]),
        ];
        for (text, expected) in cases {
            assert_eq!(text_pieces(text), expected, "{text}");
        }
    }
}
