//! `mask`: replaces parts of a response, character by character.

use std::sync::Arc;
use std::time::Instant;

use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::card_numbers_in;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::Reason;
use super::body::{TransformBody, given};

/// Maximum size of a masked body. The time to find all matches can grow with its square.
pub(super) const MASKED_BYTES_MAX: usize = 64 * 1024;
const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Maximum size of a compiled expression, in bytes: enough for `\d{19}`, which includes all digits of Unicode. The time
/// of one search is proportional to it; the deadline between matches bounds the sum.
const COMPILED_BYTES_MAX: usize = 128 * 1024;
const GROUPS_MAX: usize = 10;
const MATCHES_MAX: usize = 1_000;

/// A mask of a response body.
#[derive(Clone, Debug)]
pub struct Mask {
    matcher: Matcher,
    replacement: char,
}

#[derive(Clone, Debug)]
enum Matcher {
    /// The values of the capture groups, everywhere in the match.
    Regex(Arc<Regex>),
    /// Every card number.
    CardNumbers,
}

impl Mask {
    pub(super) fn compile(body: &TransformBody) -> Result<Self, FieldError> {
        let expression = given(body.expression.as_ref());
        let matcher = match (given(body.matcher.as_ref()), expression) {
            (Some("regex"), expression) => Matcher::Regex(Arc::new(regex(expression)?)),
            (Some("chase_stratus_pan"), None) => Matcher::CardNumbers,
            (Some("chase_stratus_pan"), Some(_)) => {
                let rule = "must not be given with the matcher `chase_stratus_pan`";
                return Err(FieldError::new("expression", rule));
            }
            _ => {
                let rule = "must be `regex` or `chase_stratus_pan`";
                return Err(FieldError::new("matcher", rule));
            }
        };
        let mut characters = given(body.replacement.as_ref()).unwrap_or_default().chars();
        match (characters.next(), characters.next()) {
            (Some(replacement), None) if !replacement.is_control() => Ok(Self {
                matcher,
                replacement,
            }),
            _ => {
                let rule = "must be exactly one character";
                Err(FieldError::new("replacement", rule))
            }
        }
    }

    /// Masks a text. Fails rather than leave a part of it unmasked, or exceed the deadline by more than one search.
    pub(super) fn apply(&self, text: &str, deadline: Instant) -> Result<String, Reason> {
        if text.len() > MASKED_BYTES_MAX {
            return Err(Reason::TooLarge(MASKED_BYTES_MAX));
        }
        match &self.matcher {
            Matcher::Regex(regex) => self.mask_groups(regex, text, deadline),
            Matcher::CardNumbers => self.mask_card_numbers(text),
        }
    }

    fn mask_groups(&self, regex: &Regex, text: &str, deadline: Instant) -> Result<String, Reason> {
        let mut masked = String::with_capacity(text.len());
        let mut end = 0;
        for (count, captures) in regex.captures_iter(text).enumerate() {
            if count == MATCHES_MAX {
                return Err(Reason::TooManyMatches(MATCHES_MAX));
            }
            if Instant::now() >= deadline {
                return Err(Reason::TooSlow);
            }
            let Some(section) = captures.get(0) else {
                continue;
            };
            let groups = captures.iter().skip(1).flatten();
            let values: Vec<&str> = groups.map(|group| group.as_str()).collect();
            masked.push_str(&text[end..section.start()]);
            masked.push_str(&self.replace(section.as_str(), &values));
            end = section.end();
        }
        masked.push_str(&text[end..]);
        Ok(masked)
    }

    fn mask_card_numbers(&self, text: &str) -> Result<String, Reason> {
        let numbers = card_numbers_in(text);
        let values: Vec<&str> = numbers
            .iter()
            .map(|number| number.expose().as_str())
            .collect();
        let masked = self.replace(text, &values);
        // Numbers with separators or escapes, and those beyond what one search finds, are still there.
        let unescaped = serde_json::from_str::<Value>(&masked).map(|json| json.to_string());
        let unescaped = unescaped.unwrap_or_default();
        match card_numbers_in(&masked).is_empty() && card_numbers_in(&unescaped).is_empty() {
            true => Ok(masked),
            false => Err(Reason::Remains),
        }
    }

    /// Replaces every character of every occurrence of the values. Occurrences are found in the original text, so that
    /// values may overlap.
    fn replace(&self, text: &str, values: &[&str]) -> String {
        let mut is_masked = vec![false; text.len()];
        for value in values.iter().filter(|value| !value.is_empty()) {
            for (start, _) in text.match_indices(value) {
                is_masked[start..start + value.len()].fill(true);
            }
        }
        let characters = text.char_indices();
        let masked = characters.map(|(index, character)| match is_masked[index] {
            true => self.replacement,
            false => character,
        });
        masked.collect()
    }
}

/// Compiles an expression for an engine whose search time is linear in the text.
fn regex(expression: Option<&str>) -> Result<Regex, FieldError> {
    let reject = |rule: String| FieldError::new("expression", rule);
    let expression = expression.ok_or_else(|| reject("is required".to_owned()))?;
    if expression.chars().count() > EXPRESSION_CHARS_MAX {
        let rule = format!("must have at most {EXPRESSION_CHARS_MAX} characters");
        return Err(reject(rule));
    }
    let regex = RegexBuilder::new(expression)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(50)
        .build();
    let regex = regex.map_err(|_| {
        reject(
            "must be a regular expression without look-around and back references, and not larger \
             than the limit when it is compiled"
                .to_owned(),
        )
    })?;
    match regex.captures_len() - 1 {
        1..=GROUPS_MAX => Ok(regex),
        _ => Err(reject(format!(
            "must have 1 to {GROUPS_MAX} capture groups"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn mask(matcher: &str, expression: Option<&str>, replacement: &str) -> Mask {
        Mask::compile(&TransformBody {
            matcher: Some(matcher.to_owned()),
            expression: expression.map(str::to_owned),
            replacement: Some(replacement.to_owned()),
            ..TransformBody::default()
        })
        .unwrap()
    }

    fn apply(mask: &Mask, text: &str) -> Result<String, Reason> {
        mask.apply(text, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn every_occurrence_of_a_captured_value_in_the_match_is_masked() {
        let cases = [
            ("^(aa).*$", "aabbccaabbccaa", "**bbcc**bbcc**"),
            ("(aa)", "aabbccaabbccaa", "**bbcc**bbcc**"),
            (
                "\"pan\":\"([0-9]+)\"",
                r#"{"pan":"4242","n":"4242"}"#,
                r#"{"pan":"****","n":"4242"}"#,
            ),
            ("(ab)(abc)", "ababc-ab", "*****-ab"),
            ("a(x)?b", "ab axb", "ab a*b"),
            ("(ü+)", "süß", "s*ß"),
            ("(z)", "nothing", "nothing"),
            ("()", "abc", "abc"),
        ];
        for (expression, text, expected) in cases {
            let masked = apply(&mask("regex", Some(expression), "*"), text).unwrap();
            assert_eq!(masked, expected, "{expression} {text}");
        }
        assert_eq!(
            apply(&mask("regex", Some("(1+)"), "█"), "2112").unwrap(),
            "2██2"
        );
    }

    #[test]
    fn card_numbers_are_masked_or_the_text_is_rejected() {
        let mask = mask("chase_stratus_pan", None, "X");

        let record = "P74 4242424242424242   0526 000000001000 4242424242424242";
        let expected = "P74 XXXXXXXXXXXXXXXX   0526 000000001000 XXXXXXXXXXXXXXXX";
        assert_eq!(apply(&mask, record).unwrap(), expected);
        for remaining in [
            "4242 4242 4242 4242",
            r#"{"pan":"424\u0032424242424242"}"#,
            r#"{"pan":"424\uff12424242424242"}"#,
            r#"{"pan":"④②④②④②④②④②④②④②④②"}"#,
        ] {
            let masked = apply(&mask, remaining);
            assert!(matches!(masked, Err(Reason::Remains)), "{masked:?}");
        }
    }

    #[test]
    fn masks_that_cost_too_much_fail() {
        let mask = mask("regex", Some("(a)"), "*");

        let matches = "a".repeat(MATCHES_MAX + 1);
        assert!(matches!(
            apply(&mask, &matches),
            Err(Reason::TooManyMatches(_))
        ));
        let long = "b".repeat(MASKED_BYTES_MAX + 1);
        assert!(matches!(apply(&mask, &long), Err(Reason::TooLarge(_))));
    }

    /// An expression whose every match searches the rest of the text.
    #[test]
    fn the_time_of_a_mask_is_limited() {
        let mask = mask("regex", Some("(x)(?:[abx]*a[abx]{30}z)?"), "*");
        let text = "xab".repeat(MASKED_BYTES_MAX / 3);

        let started_at = Instant::now();
        let masked = mask.apply(&text, started_at + Duration::from_millis(50));

        assert!(matches!(masked, Err(Reason::TooSlow)), "{masked:?}");
        // The time of the search that was running, on a busy machine.
        assert!(started_at.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn expressions_that_are_expensive_to_search_are_rejected() {
        let allowed = [
            "([0-9]{12})[0-9]{4}",
            r"(\d{6})",
            r"\b(\d{12})\d{4}\b",
            r#""pan":\s*"(\d+)""#,
            r"<Card>(.*?)</Card>",
        ];
        for expression in allowed {
            assert!(regex(Some(expression)).is_ok(), "{expression}");
        }
        assert!(regex(Some("(x)(?:[abx]*a[abx]{5000}z)?")).is_err());
    }
}
