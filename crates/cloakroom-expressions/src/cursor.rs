//! A position in the text of an expression. A parser method that fails does not move it.

use serde_json::Value;

use crate::number::number_from_text;

#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn next_is(&self, character: char) -> bool {
        self.rest.starts_with(character)
    }

    pub(crate) fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(crate) fn eat(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes `word`, unless it is the prefix of a longer word.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let found = ahead.identifier() == Some(word);
        if found {
            *self = ahead;
        }
        found
    }

    pub(crate) fn eat_text(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Moves to the next `character`, or to the end.
    pub(crate) fn skip_to(&mut self, character: char) {
        let end = self.rest.find(character).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// A letter or underscore, then letters, digits, underscores and hyphens.
    pub(crate) fn identifier(&mut self) -> Option<&'a str> {
        let is_start = |character: char| character.is_alphabetic() || character == '_';
        let is_part = |character: char| character.is_alphanumeric() || "_-".contains(character);
        self.rest
            .starts_with(is_start)
            .then(|| self.take_while(is_part))
    }

    /// Text in single or double quotes. There are no escapes.
    pub(crate) fn quoted(&mut self) -> Option<&'a str> {
        let quote = self
            .rest
            .chars()
            .next()
            .filter(|first| "'\"".contains(*first))?;
        let (text, rest) = self.rest[1..].split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    /// An integer or decimal; preserves its notation.
    pub(crate) fn number(&mut self) -> Option<Value> {
        let mut ahead = *self;
        ahead.eat('-');
        let whole = ahead.take_while(|character| character.is_ascii_digit());
        if whole.is_empty() {
            return None;
        }
        let mut fraction = ahead;
        if fraction.eat('.')
            && !fraction
                .take_while(|character| character.is_ascii_digit())
                .is_empty()
        {
            ahead = fraction;
        }

        let text = &self.rest[..self.rest.len() - ahead.rest.len()];
        let number = number_from_text(text)?;
        *self = ahead;
        Some(Value::Number(number))
    }

    pub(crate) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .find(|character| !accept(character))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_end_at_the_first_other_character() {
        let cases = [
            ("12 ", Some(json!(12)), " "),
            ("-3", Some(json!(-3)), ""),
            ("007", Some(json!(7)), ""),
            ("19.5x", Some(json!(19.5)), "x"),
            ("4.", Some(json!(4)), "."),
            ("4.x", Some(json!(4)), ".x"),
            (
                "9223372036854775808",
                Some(json!(9223372036854775808_u64)),
                "",
            ),
            ("-", None, "-"),
            (".5", None, ".5"),
        ];
        for (text, number, rest) in cases {
            let mut cursor = Cursor::new(text);
            assert_eq!(cursor.number(), number, "{text}");
            assert_eq!(cursor.rest, rest, "{text}");
        }
    }

    #[test]
    fn quotes_must_match() {
        let cases = [
            ("'a\"b' c", Some("a\"b"), " c"),
            ("\"it's\"", Some("it's"), ""),
            ("''", Some(""), ""),
            ("'open", None, "'open"),
            ("bare", None, "bare"),
        ];
        for (text, quoted, rest) in cases {
            let mut cursor = Cursor::new(text);
            assert_eq!(cursor.quoted(), quoted, "{text}");
            assert_eq!(cursor.rest, rest, "{text}");
        }
    }
}
