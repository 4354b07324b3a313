//! Values that were sent to the destination, and that its response must not return to the caller.
//!
//! A response is withheld if it contains digits that have the first six and the last four of a hidden card number in its length,
//! whatever the digits between them are: otherwise, it would tell the caller which of its guesses is the number.

use std::collections::HashSet;

use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::read_json;
use cloakroom_platform::card_numbers::{card_numbers_in, contains_card_number};
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::xml;
use crate::exchange::BufferedResponse;

/// Lengths of card numbers.
const NUMBER_DIGITS: std::ops::RangeInclusive<usize> = 12..=19;
/// The part of a card number that may be displayed.
const FIRST: usize = 6;
const LAST: usize = 4;
/// The member with the number of a card, which may fail the Luhn check in a network token.
const NUMBER: &str = "number";
/// Shorter configuration values are not secrets, and any response could contain them.
const SECRET_BYTES_MIN: usize = 8;

/// Card numbers that the caller does not see, and configuration values.
#[derive(Default)]
pub(super) struct Withheld {
    numbers: HashSet<Shape>,
    secrets: Vec<Sensitive<String>>,
    /// Whether the request has values that the caller does not see.
    pub(super) has_hidden_values: bool,
    /// Whether card numbers of the destination are withheld too.
    pub(super) any_number: bool,
}

/// What is visible of a card number: its length, the first six digits and the last four.
type Shape = (usize, [u8; FIRST], [u8; LAST]);

impl Withheld {
    /// Withholds the card numbers in a value.
    pub(super) fn add_numbers(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                for number in card_numbers_in(text) {
                    self.numbers.extend(shape(number.expose().as_bytes()));
                }
            }
            Value::Number(number) => self.add_numbers(&number.to_string().into()),
            Value::Array(elements) => elements.iter().for_each(|one| self.add_numbers(one)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_numbers(&name.as_str().into());
                    self.add_numbers(member);
                    if name == NUMBER
                        && let Some(number) = member.as_str()
                    {
                        self.numbers.extend(shape(number.as_bytes()));
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub(super) fn add_secret(&mut self, secret: &Sensitive<String>) {
        if secret.expose().len() >= SECRET_BYTES_MIN {
            self.secrets.push(Sensitive::new(secret.expose().clone()));
        }
    }

    /// Whether a response need not be searched. Decided without the values: it would tell whether one is a card number.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_numbers() && self.secrets.is_empty()
    }

    pub(super) fn has_numbers(&self) -> bool {
        self.any_number || self.has_hidden_values
    }

    /// Whether a response contains what looks like a number, in any notation, or a secret.
    pub(super) fn are_in(&self, response: &BufferedResponse) -> bool {
        let mut readings = readings(response.body.expose());
        readings.extend(header_readings(&response.headers));
        readings.iter().any(|text| {
            let text = text.expose().as_str();
            let has_secret = |secret: &Sensitive<String>| text.contains(secret.expose().as_str());
            self.secrets.iter().any(has_secret)
                || (self.any_number && contains_card_number(text))
                || self.resembles(text)
        })
    }

    /// Whether a run of digits in a text resembles a number. Only letters end a run.
    fn resembles(&self, text: &str) -> bool {
        let lengths: HashSet<usize> = self.numbers.iter().map(|number| number.0).collect();
        let runs = text.split(char::is_alphabetic).map(|run| {
            let digits = run.bytes().filter(u8::is_ascii_digit);
            Sensitive::new(digits.collect::<Vec<u8>>())
        });
        let mut runs = runs.filter(|digits| NUMBER_DIGITS.start() <= &digits.expose().len());
        runs.any(|digits| {
            let mut lengths = lengths.iter();
            lengths.any(|length| {
                let mut windows = digits.expose().windows(*length);
                windows.any(|it| shape(it).is_some_and(|shape| self.numbers.contains(&shape)))
            })
        })
    }
}

fn shape(digits: &[u8]) -> Option<Shape> {
    let is_number = NUMBER_DIGITS.contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let (first, last) = (digits.first_chunk()?, digits.last_chunk()?);
    is_number.then_some((digits.len(), *first, *last))
}

/// A text as it is, and decoded in each way that a reader of it could decode it.
fn readings(bytes: &[u8]) -> Vec<Sensitive<String>> {
    // In UTF-16 and UTF-32, there are NULs between digits.
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    let percent_decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
    let xml_decoded = xml::unescape(&text);
    let mut readings = vec![percent_decoded, xml_decoded];
    if let Ok(json) = read_json::<Value>(text.as_bytes()) {
        let mut decoded = String::new();
        decode(&json, &mut decoded);
        readings.push(decoded);
    }
    readings.push(text);
    readings.into_iter().map(Sensitive::new).collect()
}

/// The names and values of a document without escapes, in lines.
fn decode(value: &Value, decoded: &mut String) {
    match value {
        Value::String(text) => decoded.extend([text, "\n"]),
        Value::Number(number) => decoded.extend([&*number.to_string(), "\n"]),
        Value::Array(elements) => elements.iter().for_each(|one| decode(one, decoded)),
        Value::Object(members) => {
            for (name, member) in members {
                decoded.extend([name, "\n"]);
                decode(member, decoded);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn header_readings(headers: &HeaderMap) -> Vec<Sensitive<String>> {
    let texts = headers
        .iter()
        .flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    texts.flat_map(readings).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn withheld() -> Withheld {
        let mut withheld = Withheld::default();
        withheld.add_numbers(&json!({"number": "4147202464191053", "month": 12, "note": "x"}));
        withheld.add_secret(&Sensitive::new("sk_live_\"42\"".to_owned()));
        withheld.add_secret(&Sensitive::new("short".to_owned()));
        withheld
    }

    fn response(body: &str, header: &str) -> BufferedResponse {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", header.parse().unwrap());
        BufferedResponse {
            status: http::StatusCode::OK,
            headers,
            body: Sensitive::new(body.as_bytes().to_vec()),
        }
    }

    #[test]
    fn numbers_and_secrets_are_found_in_any_notation() {
        for (body, expected) in [
            ("{\"a\": \"4147202464191053\"}", true),
            ("{\"a\": 4147202464191053}", true),
            ("{\"a\": 4.147202464191053e15}", true),
            ("{\"4147202464191053\": 1}", true),
            (r#"{"a": "\u0034147202464191053"}"#, true),
            ("{\"a\": \"4147 2024-6419.1053\"}", true),
            ("[\"4147\",\"2024\",\"6419\",\"1053\"]", true),
            ("a=%34147202464191053", true),
            ("<a>9 4147202464191053</a>", true),
            (&"4147202464191053".replace("", "\0"), true),
            ("key=sk_live_\"42\";", true),
            (r#"{"key": "sk_live_\"42\""}"#, true),
            (
                "{\"last4\": \"1053\", \"bin\": \"41472024\", \"id\": 4147202464191054}",
                false,
            ),
            ("short", false),
            ("", false),
        ] {
            assert_eq!(withheld().are_in(&response(body, "x")), expected, "{body}");
        }
        assert!(withheld().are_in(&response("", "ref 4147-2024-6419-1053")));
    }

    #[test]
    fn guesses_are_withheld_whatever_they_are() {
        for (text, expected) in [
            ("4147202464191053", true),
            ("4147209999991053", true),
            ("x 1 4147-2000-0000-1053", true),
            (r#"{"a": "\u0034147200000001053"}"#, true),
            ("414147200000001053", true),
            ("4147200000001054", false),
            ("4242424242424242", false),
            ("41472000000001053", false),
            ("414720", false),
        ] {
            assert_eq!(
                withheld().resembles(text) || withheld().are_in(&response(text, "x")),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_of_network_tokens_may_fail_the_check_digit() {
        let mut withheld = Withheld::default();
        withheld.add_numbers(&json!({"data": {"number": "4147202464191054"}}));
        assert!(withheld.are_in(&response("4147202464191054", "x")));
    }
}
