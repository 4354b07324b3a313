//! Finds expressions in a body that is streamed, across the borders of its parts.

/// Bytes between the braces. Longer text is no expression.
const INSIDE_BYTES_MAX: usize = 4 * cloakroom_expressions::TEXT_CHARACTERS_MAX;

/// A scanner of one body. Its state is a few bytes, whatever the body contains.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// Whether `%7B` and `%7D` are braces, as in forms.
    is_encoded: bool,
    /// The part of a percent-encoded byte that has arrived.
    percent: Percent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// After one opening brace.
    Opening,
    /// After two opening braces and this many bytes.
    Inside(usize),
    /// Inside, after one closing brace.
    Closing(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Percent {
    #[default]
    None,
    Sign,
    Seven,
}

impl Scanner {
    pub(super) fn new(is_encoded: bool) -> Self {
        Self {
            is_encoded,
            ..Self::default()
        }
    }

    /// Whether the body contains an expression that ends in this part.
    pub(super) fn find(&mut self, part: &[u8]) -> bool {
        part.iter().any(|byte| self.advance(*byte))
    }

    fn advance(&mut self, byte: u8) -> bool {
        if !self.is_encoded {
            return self.advance_decoded(byte);
        }
        let (percent, decoded) = match (self.percent, byte) {
            (_, b'%') => (Percent::Sign, None),
            (Percent::Sign, b'7') => (Percent::Seven, None),
            (Percent::Seven, b'b' | b'B') => (Percent::None, Some(b'{')),
            (Percent::Seven, b'd' | b'D') => (Percent::None, Some(b'}')),
            _ => (Percent::None, Some(byte)),
        };
        self.percent = percent;
        decoded.is_some_and(|byte| self.advance_decoded(byte))
    }

    fn advance_decoded(&mut self, byte: u8) -> bool {
        // No text, and so no expression, contains these.
        let is_control = byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (_, _) if is_control => State::Outside,
            (State::Outside, b'{') => State::Opening,
            (State::Outside, _) => State::Outside,
            (State::Opening, b'{') => State::Inside(0),
            (State::Opening, _) => State::Outside,
            (State::Inside(length), b'}') => State::Closing(length),
            (State::Closing(_), b'}') => {
                self.state = State::Outside;
                return true;
            }
            (State::Inside(length) | State::Closing(length), _) => match length + 1 {
                INSIDE_BYTES_MAX => State::Outside,
                length => State::Inside(length),
            },
        };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found_across_parts() {
        let long = format!("{{{{ {} }}}}", "x".repeat(INSIDE_BYTES_MAX));
        let cases: [(&str, bool, bool); 12] = [
            ("{{ id }}", true, true),
            ("a {{id}} b", true, true),
            ("{\"a\": \"{{ id | json: '$.number' }}\"}", true, true),
            ("{{{ id }}}", true, true),
            ("{{ a } b }}", true, true),
            ("{ { id } }", false, false),
            ("{{ id", false, false),
            ("id }}", false, false),
            ("{{ \u{1} }}", false, false),
            ("a=%7B%7B+id+%7D%7D", false, true),
            ("a=%7b{ id %7d}", false, true),
            (&long, false, false),
        ];
        for (text, expected, expected_if_encoded) in cases {
            for piece in [1, 2, 3, 5, text.len()] {
                for (is_encoded, expected) in [(false, expected), (true, expected_if_encoded)] {
                    let mut scanner = Scanner::new(is_encoded);
                    let mut pieces = text.as_bytes().chunks(piece);
                    let found = pieces.any(|piece| scanner.find(piece));
                    assert_eq!(found, expected, "{text:.40} by {piece}, {is_encoded}");
                }
            }
        }
    }
}
