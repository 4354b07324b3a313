//! Values that were sent to the destination, and that its response must not return to the caller.

use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::read_json;
use cloakroom_platform::card_numbers::{card_numbers_in, contains_card_number};
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::xml;
use crate::exchange::BufferedResponse;

/// The shortest card number.
const NUMBER_DIGITS_MIN: usize = 12;
/// The part of a card number that may be displayed.
const FIRST: usize = 6;
const LAST: usize = 4;
/// Shorter configuration values are not secrets, and any response could contain them.
const SECRET_BYTES_MIN: usize = 8;

/// Card numbers that the caller does not see, and configuration values.
#[derive(Default)]
pub(super) struct Withheld {
    numbers: Vec<Sensitive<String>>,
    secrets: Vec<Sensitive<String>>,
    /// Whether card numbers of the destination are withheld too.
    pub(super) any_number: bool,
}

impl Withheld {
    /// Withholds the card numbers in a value.
    pub(super) fn add_numbers(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.numbers.extend(card_numbers_in(text)),
            Value::Number(number) => self.add_numbers(&number.to_string().into()),
            Value::Array(elements) => elements.iter().for_each(|one| self.add_numbers(one)),
            Value::Object(members) => members.values().for_each(|one| self.add_numbers(one)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub(super) fn add_secret(&mut self, secret: &Sensitive<String>) {
        if secret.expose().len() >= SECRET_BYTES_MIN {
            self.secrets.push(Sensitive::new(secret.expose().clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_numbers() && self.secrets.is_empty()
    }

    pub(super) fn has_numbers(&self) -> bool {
        self.any_number || !self.numbers.is_empty()
    }

    /// Whether a response contains a number, in any notation, or a secret.
    pub(super) fn are_in(&self, response: &BufferedResponse) -> bool {
        let mut readings = readings(response.body.expose());
        readings.extend(header_readings(&response.headers));
        readings.iter().any(|text| {
            let text = text.expose().as_str();
            let has_secret = |secret: &Sensitive<String>| text.contains(secret.expose().as_str());
            self.secrets.iter().any(has_secret)
                || (self.any_number && contains_card_number(text))
                || self.any_number(text, |number, digits| digits.contains(number))
        })
    }

    /// Whether text of the caller contains digits that have the first six and the last four of a number in its length.
    /// It is rejected whatever the digits between them are: whether a response is withheld would otherwise tell the caller
    /// which of its guesses is the number.
    pub(super) fn resembles(&self, text: &[u8]) -> bool {
        let is_like = |number: &str, digits: &str| {
            let (first, last) = (&number[..FIRST], &number[number.len() - LAST..]);
            let mut candidates = digits.as_bytes().windows(number.len());
            candidates.any(|it| it.starts_with(first.as_bytes()) && it.ends_with(last.as_bytes()))
        };
        readings(text)
            .iter()
            .any(|text| self.any_number(text.expose(), is_like))
    }

    pub(super) fn headers_resemble(&self, headers: &HeaderMap) -> bool {
        headers
            .values()
            .any(|value| self.resembles(value.as_bytes()))
    }

    /// Whether a number and a run of digits in a text match. Only letters end a run.
    fn any_number(&self, text: &str, matches: impl Fn(&str, &str) -> bool) -> bool {
        let runs = text.split(char::is_alphabetic).map(|run| {
            let digits = run.chars().filter(char::is_ascii_digit);
            Sensitive::new(digits.collect::<String>())
        });
        let mut runs = runs.filter(|digits| digits.expose().len() >= NUMBER_DIGITS_MIN);
        runs.any(|digits| {
            let mut numbers = self.numbers.iter();
            numbers.any(|number| matches(number.expose(), digits.expose()))
        })
    }
}

/// A text as it is, and decoded in each way that a reader of it could decode it.
fn readings(bytes: &[u8]) -> Vec<Sensitive<String>> {
    // In UTF-16 and UTF-32, there are NULs between digits.
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    let percent_decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
    let xml_decoded = xml::unescape(&text);
    // Serialized again, JSON has no escaped digits.
    let json = read_json::<Value>(text.as_bytes()).map(|json| json.to_string());
    let mut readings = vec![percent_decoded, xml_decoded, text];
    readings.extend(json.ok());
    readings.into_iter().map(Sensitive::new).collect()
}

fn header_readings(headers: &HeaderMap) -> Vec<Sensitive<String>> {
    let values = headers.values();
    values
        .flat_map(|value| readings(value.as_bytes()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn withheld() -> Withheld {
        let mut withheld = Withheld::default();
        withheld.add_numbers(&json!({"number": "4147202464191053", "month": 12, "note": "x"}));
        withheld.add_secret(&Sensitive::new("sk_live_42".to_owned()));
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
            (r#"{"a": "\u0034147202464191053"}"#, true),
            ("{\"a\": \"4147 2024-6419.1053\"}", true),
            ("[\"4147\",\"2024\",\"6419\",\"1053\"]", true),
            ("a=%34147202464191053", true),
            ("<a>9 4147202464191053</a>", true),
            (&"4147202464191053".replace("", "\0"), true),
            ("key=sk_live_42;", true),
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
    fn guesses_are_rejected_whatever_they_are() {
        for (text, expected) in [
            ("4147202464191053", true),
            ("4147209999991053", true),
            ("x 1 4147-2000-0000-1053", true),
            (r#"{"a": "\u0034147200000001053"}"#, true),
            ("414147200000001053", true),
            ("4147200000001054", false),
            ("4242424242424242", false),
            ("414720", false),
        ] {
            assert_eq!(withheld().resembles(text.as_bytes()), expected, "{text}");
        }
    }
}
