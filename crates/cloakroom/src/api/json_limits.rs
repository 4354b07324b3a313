//! Limits on the shape of a JSON text, checked before anything is built from it.
//!
//! The scanner follows structure only; whether the text is JSON at all is the parser's business.

use std::borrow::Cow;

pub(super) const DEPTH_MAX: usize = 32;
pub(super) const KEYS_MAX: usize = 1_000;
pub(super) const VALUES_MAX: usize = 10_000;
pub(super) const NUMBER_CHARS_MAX: usize = 64;

/// The parser takes such members for its own marks and reads into their text, past every limit.
const RESERVED: &str = "$serde_json::private::";

/// Which limit a text breaks. The words are for the client, so no part of the text is in them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("must not be nested deeper than {DEPTH_MAX} levels")]
    Depth,
    #[error("must not hold an object with more than {KEYS_MAX} members")]
    Keys,
    #[error("must not hold more than {VALUES_MAX} values")]
    Values,
    #[error("must not hold a number longer than {NUMBER_CHARS_MAX} characters")]
    Number,
    #[error("must not name a member twice in one object")]
    DuplicateKey,
    #[error("must not name a member that starts with `{RESERVED}`")]
    ReservedKey,
    #[error("must not hold half of a surrogate pair")]
    Surrogate,
    #[error("must be well-formed JSON")]
    Malformed,
}

/// Checks the text against every limit, in one pass.
pub(super) fn check(text: &str) -> Result<(), Excess> {
    let mut scanner = Scanner {
        text,
        at: 0,
        values: 0,
        open: Vec::new(),
        keys: Vec::new(),
    };
    scanner.run()
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    values: usize,
    /// Open objects and arrays; for an object, where its member names start in `keys`.
    open: Vec<Option<usize>>,
    /// Member names of all open objects, innermost last.
    keys: Vec<Cow<'a, str>>,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) -> Result<(), Excess> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'{' => self.enter(Some(self.keys.len()))?,
                b'[' => self.enter(None)?,
                b'}' | b']' => self.leave()?,
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' | b'f' | b'n' => self.word()?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn enter(&mut self, keys_start: Option<usize>) -> Result<(), Excess> {
        self.count_value()?;
        if self.open.len() == DEPTH_MAX {
            return Err(Excess::Depth);
        }
        self.open.push(keys_start);
        self.at += 1;
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Excess> {
        let Some(keys_start) = self.open.pop() else {
            return Err(Excess::Malformed);
        };
        if let Some(start) = keys_start {
            let keys = &mut self.keys[start..];
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(Excess::DuplicateKey);
            }
            self.keys.truncate(start);
        }
        self.at += 1;
        Ok(())
    }

    /// A string is a member name when a colon follows it, and a value otherwise.
    fn string(&mut self) -> Result<(), Excess> {
        let start = self.at;
        let escaped = self.skip_string()?;
        let raw = &self.text[start..self.at];
        if self.next_is_colon() {
            return self.member(raw, escaped);
        }
        self.count_value()
    }

    fn member(&mut self, raw: &'a str, escaped: bool) -> Result<(), Excess> {
        let name = if escaped {
            Cow::Owned(serde_json::from_str(raw).map_err(|_| Excess::Malformed)?)
        } else {
            Cow::Borrowed(&raw[1..raw.len() - 1])
        };
        if name.starts_with(RESERVED) {
            return Err(Excess::ReservedKey);
        }
        let Some(Some(start)) = self.open.last().copied() else {
            return Err(Excess::Malformed);
        };
        if self.keys.len() - start == KEYS_MAX {
            return Err(Excess::Keys);
        }
        self.keys.push(name);
        Ok(())
    }

    /// Moves past the closing quote and tells whether the string has escapes.
    fn skip_string(&mut self) -> Result<bool, Excess> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            match bytes.get(self.at) {
                None => return Err(Excess::Malformed),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.skip_escape()?;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// The parser does not look at escapes in text that is kept as it came, so this does.
    fn skip_escape(&mut self) -> Result<(), Excess> {
        let Some(unit) = self.code_unit() else {
            self.at += 2;
            return Ok(());
        };
        self.at += 6;
        match unit {
            0xD800..=0xDBFF => match self.code_unit() {
                Some(0xDC00..=0xDFFF) => {
                    self.at += 6;
                    Ok(())
                }
                _ => Err(Excess::Surrogate),
            },
            0xDC00..=0xDFFF => Err(Excess::Surrogate),
            _ => Ok(()),
        }
    }

    /// The UTF-16 unit of a `\uXXXX` escape that starts here.
    fn code_unit(&self) -> Option<u16> {
        let rest = self.text.get(self.at..)?;
        let digits = rest.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    }

    fn next_is_colon(&self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }

    fn number(&mut self) -> Result<(), Excess> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        if length > NUMBER_CHARS_MAX {
            return Err(Excess::Number);
        }
        self.at += length;
        self.count_value()
    }

    fn word(&mut self) -> Result<(), Excess> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        self.count_value()
    }

    fn count_value(&mut self) -> Result<(), Excess> {
        self.values += 1;
        if self.values > VALUES_MAX {
            Err(Excess::Values)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_limit_holds_at_its_edge() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let members = |count: usize| {
            let members: Vec<String> = (0..count).map(|n| format!("\"k{n}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        let values = |count: usize| format!("[{}]", vec!["1"; count - 1].join(","));
        let cases = [
            (nested(DEPTH_MAX), Ok(())),
            (nested(DEPTH_MAX + 1), Err(Excess::Depth)),
            (members(KEYS_MAX), Ok(())),
            (members(KEYS_MAX + 1), Err(Excess::Keys)),
            (values(VALUES_MAX), Ok(())),
            (values(VALUES_MAX + 1), Err(Excess::Values)),
            ("1".repeat(NUMBER_CHARS_MAX), Ok(())),
            ("1".repeat(NUMBER_CHARS_MAX + 1), Err(Excess::Number)),
            (r#"{"a":{"a":1},"b":{"a":1}}"#.into(), Ok(())),
            (r#"{"a":1,"b":2,"a":3}"#.into(), Err(Excess::DuplicateKey)),
            (r#"{"a":1,"\u0061":2}"#.into(), Err(Excess::DuplicateKey)),
            (
                r#"{"$serde_json::private::Number":"1"}"#.into(),
                Err(Excess::ReservedKey),
            ),
            (
                r#"[{"\u0024serde_json::private::RawValue":"1"}]"#.into(),
                Err(Excess::ReservedKey),
            ),
            (r#""\ud83d\ude00""#.into(), Ok(())),
            (r#""\ud83d""#.into(), Err(Excess::Surrogate)),
            (r#""\ude00""#.into(), Err(Excess::Surrogate)),
            (r#""\\ud83d""#.into(), Ok(())),
            (r#"["{\"a\":1", "]"]"#.into(), Ok(())),
            ("]".into(), Err(Excess::Malformed)),
            ("\"open".into(), Err(Excess::Malformed)),
        ];
        for (text, expected) in cases {
            assert_eq!(check(&text), expected, "{}", &text[..text.len().min(60)]);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_without_panic(text in r#"[\[\]{}",:\\ua0-9e. -]{0,60}"#) {
            let _ = check(&text);
        }

        #[test]
        fn text_that_passes_and_parses_has_no_hidden_surrogates(text in r#""(\\u[d0][89a-c0][0-9]{2}){0,4}""#) {
            if check(&text).is_ok() {
                prop_assert!(serde_json::from_str::<String>(&text).is_ok());
            }
        }
    }
}
