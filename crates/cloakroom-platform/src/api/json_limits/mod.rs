//! Structural limits of JSON text, checked before it is parsed.
//!
//! The scanner follows the structure only; the parser validates the syntax.

use std::borrow::Cow;

pub(super) const DEPTH_MAX: usize = 32;
pub(super) const KEYS_MAX: usize = 1_000;
pub(super) const VALUES_MAX: usize = 10_000;
pub(super) const NUMBER_CHARS_MAX: usize = 64;

/// `serde_json` interprets members with this prefix itself and parses their text, which bypasses the limits.
const RESERVED: &str = "$serde_json::private::";

/// The limit that a text exceeds. The client sees the message, so it contains no part of the text.
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
    #[error("must not contain duplicate member names in an object")]
    DuplicateKey,
    #[error("must not name a member that starts with `{RESERVED}`")]
    ReservedKey,
    #[error("must not contain an unpaired surrogate")]
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
    /// Open objects and arrays. For an object, the index of its first member name in `keys`.
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

    /// Skips a string and returns whether it contains escapes.
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

    /// Skips an escape, rejecting unpaired surrogates. The parser does not validate escapes in raw values.
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

    /// The UTF-16 code unit of a `\uXXXX` escape at the current position.
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
mod tests;
