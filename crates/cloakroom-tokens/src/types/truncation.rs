//! Card number truncation: the digits that may be displayed without revealing the number.

use std::borrow::Cow;

use cloakroom_crypto::random_bytes;
use cloakroom_platform::card_numbers::contains_card_number;
use serde_json::Value;

use super::TokenKind;

/// Replaces a truncated digit. It differs from the `X` of masks, because a mask filter whose result equals its input
/// hides the whole text.
const HIDDEN: char = '\u{2022}';
/// PCI DSS allows the first eight digits of numbers with at least sixteen digits, and the first six of shorter ones.
const LONG_NUMBER: usize = 16;
const LAST: usize = 4;

/// Truncates the card number in the data to BIN and last four. Data of other types is returned unchanged.
pub fn truncate(kind: TokenKind, data: &Value) -> Cow<'_, Value> {
    replace_hidden(kind, data, || HIDDEN)
}

/// Replaces the digits that truncation hides with random ones. The results of expressions then have the format of a
/// card number and disclose nothing of the hidden digits.
pub fn randomize_hidden(kind: TokenKind, data: &Value) -> Cow<'_, Value> {
    replace_hidden(kind, data, || {
        char::from(b'0' + random_bytes::<1>()[0] % 10)
    })
}

/// Evaluates a client's expression on data of a card type with the number truncated, then replaces the truncated number
/// in the result with the full one. Neither the result nor its acceptance depends on single hidden digits, which a
/// client could otherwise recover one by one by comparing results.
pub fn evaluate_truncated(
    kind: TokenKind,
    data: &Value,
    evaluate: impl FnOnce(&Value) -> Result<String, String>,
) -> Result<Evaluated, String> {
    let truncated = truncate(kind, data);
    let text = evaluate(&truncated)?;
    let numbers = card_number(kind, data).zip(card_number(kind, &truncated));
    let Some((number, truncated)) = numbers else {
        return Ok(Evaluated {
            text,
            has_number: true,
        });
    };
    let has_number = text.contains(truncated);
    let text = text.replace(truncated, number);
    match text.contains(HIDDEN) {
        true => Err(
            "must evaluate to the full card number, or to nothing of it but BIN and last four"
                .to_owned(),
        ),
        false => Ok(Evaluated { text, has_number }),
    }
}

/// The result of an expression, and whether it contains the full card number of the data.
pub struct Evaluated {
    pub text: String,
    pub has_number: bool,
}

/// The card number of data of a card type.
fn card_number(kind: TokenKind, data: &Value) -> Option<&str> {
    match kind {
        TokenKind::Card | TokenKind::NetworkToken => data.get("number")?.as_str(),
        TokenKind::CardNumber => data.as_str(),
        _ => None,
    }
}

fn replace_hidden(kind: TokenKind, data: &Value, replacement: impl Fn() -> char) -> Cow<'_, Value> {
    let Some(number) = card_number(kind, data) else {
        return Cow::Borrowed(data);
    };
    let first = if number.len() < LONG_NUMBER { 6 } else { 8 };
    let last = number.len().saturating_sub(LAST);
    let digits = number.chars().enumerate();
    let replaced = digits.map(
        |(position, digit)| match (first..last).contains(&position) {
            true => replacement(),
            false => digit,
        },
    );
    let replaced: String = replaced.collect();
    Cow::Owned(without_copies(data, number, &replaced))
}

/// Replaces the number everywhere in the data: in its own member, in other members and in their names. All digits of
/// text that contains a card number in another format are replaced too.
fn without_copies(data: &Value, number: &str, replaced: &str) -> Value {
    let in_text = |text: &str| match text.contains(number) {
        true => text.replace(number, replaced),
        false if contains_card_number(text) => {
            let hide = |c: char| if c.is_numeric() { HIDDEN } else { c };
            text.chars().map(hide).collect()
        }
        false => text.to_owned(),
    };
    match data {
        Value::String(text) => in_text(text).into(),
        Value::Number(digits) if contains_card_number(&digits.to_string()) => {
            in_text(&digits.to_string()).into()
        }
        Value::Array(elements) => elements
            .iter()
            .map(|element| without_copies(element, number, replaced))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (in_text(name), without_copies(value, number, replaced)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => data.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn card_numbers_are_truncated_to_bin_and_last_four() {
        let cases = [
            ("4147202464191053", "41472024••••1053"),
            ("378282246310005", "378282•••••0005"),
            ("30569309025904", "305693••••5904"),
            ("4222222222222", "422222•••2222"),
            ("6304000000000000018", "63040000•••••••0018"),
        ];
        for (number, expected) in cases {
            let card = json!({"number": number, "expiration_month": 12});
            let truncated = json!({"number": expected, "expiration_month": 12});
            let plain = Value::from(number);
            assert_eq!(*truncate(TokenKind::Card, &card), truncated);
            assert_eq!(*truncate(TokenKind::NetworkToken, &card), truncated);
            assert_eq!(*truncate(TokenKind::CardNumber, &plain), expected);
            assert_eq!(*truncate(TokenKind::Token, &card), card);
        }
    }

    #[test]
    fn copies_of_the_number_are_truncated_as_well() {
        let number = "4147202464191053";
        let card = json!({
            "number": number, "raw": format!("PAN {number} exp"), "n": 4_147_202_464_191_053_u64,
            "spelled": "4147 2024 6419 1053", "list": [{number: "x"}], "zip": "94107",
        });
        let truncated = json!({
            "number": "41472024••••1053", "raw": "PAN 41472024••••1053 exp", "n": "41472024••••1053",
            "spelled": "•••• •••• •••• ••••", "list": [{"41472024••••1053": "x"}], "zip": "94107",
        });
        assert_eq!(*truncate(TokenKind::Card, &card), truncated);
    }

    #[test]
    fn random_digits_replace_only_hidden_ones() {
        let number = Value::from("4147202464191053");
        let hidden: std::collections::HashSet<String> = (0..50)
            .map(|_| {
                let replaced = randomize_hidden(TokenKind::CardNumber, &number);
                let text = replaced.as_str().unwrap().to_owned();
                assert!(
                    text.starts_with("41472024") && text.ends_with("1053"),
                    "{text}"
                );
                assert!(text.bytes().all(|digit| digit.is_ascii_digit()), "{text}");
                text
            })
            .collect();
        assert!(30 < hidden.len());
    }
}
