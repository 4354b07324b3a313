//! SPDX licence expressions: whether the licences that are allowed satisfy one.

/// Whether `allowed` satisfies `expression`, for example `MIT OR (Apache-2.0 AND ISC)`.
pub(super) fn is_allowed(expression: &str, allowed: &[&str]) -> Result<bool, String> {
    let words = words(expression);
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    let answer = reader.any()?;
    match reader.words.first() {
        None => Ok(answer),
        Some(word) => Err(format!("`{word}` was not expected")),
    }
}

/// Whether `expression` names the licence `id`.
pub(super) fn names(expression: &str, id: &str) -> bool {
    let (words, id) = (words(expression), words(id));
    words.windows(id.len()).any(|found| found == id.as_slice())
}

fn words(expression: &str) -> Vec<String> {
    // Old manifests write `/` for `OR`.
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Reader<'a> {
    words: &'a [String],
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn any(&mut self) -> Result<bool, String> {
        let mut answer = self.all()?;
        while self.takes("OR") {
            // Both sides are read in any case: the expression must be understood to its end.
            answer |= self.all()?;
        }
        Ok(answer)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.takes("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let answer = self.any()?;
            return if self.takes(")") {
                Ok(answer)
            } else {
                Err("`)` is missing".to_owned())
            };
        }
        let mut id = self.word()?;
        if self.takes("WITH") {
            id = format!("{id} WITH {}", self.word()?);
        }
        Ok(self.allowed.contains(&id.as_str()))
    }

    fn word(&mut self) -> Result<String, String> {
        match self.words.split_first() {
            Some((word, rest)) if !["OR", "AND", "WITH", "(", ")"].contains(&word.as_str()) => {
                self.words = rest;
                Ok(word.clone())
            }
            _ => Err("a licence is missing".to_owned()),
        }
    }

    fn takes(&mut self, expected: &str) -> bool {
        match self.words.split_first() {
            Some((word, rest)) if word == expected => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed_as_spdx_says() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        let cases = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("MIT AND ISC", Some(true)),
            ("GPL-3.0 OR MIT AND ISC", Some(true)),
            ("(GPL-3.0 OR MIT) AND Zlib", Some(false)),
            ("(GPL-3.0 OR MIT) AND ISC", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT ISC", None),
        ];
        for (expression, expected) in cases {
            assert_eq!(
                is_allowed(expression, &allowed).ok(),
                expected,
                "{expression}"
            );
        }
    }

    #[test]
    fn a_licence_is_named_by_its_whole_id() {
        assert!(names("MIT OR Apache-2.0", "MIT"));
        assert!(names(
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "Apache-2.0 WITH LLVM-exception"
        ));
        assert!(!names("MIT-0", "MIT"));
    }
}
