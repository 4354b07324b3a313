//! Card number truncation: the digits that may be displayed without revealing the number.
//!
//! What expressions see of a card is determined by position and length alone. No text is compared with the number:
//! whoever may write a member of the data could otherwise find the number by comparison.

use std::borrow::Cow;

use serde_json::Value;

use super::TokenKind;

/// Replaces a truncated digit of the number. It differs from the `X` of masks, because a mask filter whose result equals
/// its input hides the whole text.
const HIDDEN: char = '\u{2022}';
/// Replaces a hidden digit outside of the number.
const HIDDEN_ELSEWHERE: char = '*';
/// No card number is shorter. Longer runs of digits are hidden outside of the number.
const SHORTEST_NUMBER: usize = 12;
/// PCI DSS allows the first eight digits of numbers with at least sixteen digits, and the first six of shorter ones.
const LONG_NUMBER: usize = 16;
const LAST: usize = 4;

/// Truncates the number of a card to BIN and last four, and hides every other run of digits that is long enough for a
/// card number. Data of other types is returned unchanged.
pub fn truncate(kind: TokenKind, data: &Value) -> Cow<'_, Value> {
    hide(kind, data, |text| truncated(text, HIDDEN), hide_runs)
}

/// Like `truncate`, with zeros for hidden digits: filters that randomize digits then yield the format of the data.
pub fn truncate_to_zeros(kind: TokenKind, data: &Value) -> Cow<'_, Value> {
    let zeros = |text: &str| hide_runs(text).replace(HIDDEN_ELSEWHERE, "0");
    hide(kind, data, |text| truncated(text, '0'), zeros)
}

/// Evaluates the expression of a search index with the number truncated, then replaces the truncated number in the
/// result with the full one. The result contains the full number or none of its hidden digits: a client could recover
/// single ones by comparing results.
pub fn evaluate_index(
    kind: TokenKind,
    data: &Value,
    evaluate: impl FnOnce(&Value) -> Result<String, String>,
) -> Result<String, String> {
    let text = evaluate(&truncate(kind, data))?;
    restore_number(kind, data, text)
}

/// Evaluates a fingerprint expression likewise. The result must contain the full number, so the other members are
/// included as they are: what differs has different fingerprints.
pub fn evaluate_fingerprint(
    kind: TokenKind,
    data: &Value,
    evaluate: impl FnOnce(&Value) -> Result<String, String>,
) -> Result<String, String> {
    let truncated = hide(kind, data, |text| truncated(text, HIDDEN), str::to_owned);
    let text = evaluate(&truncated)?;
    match card_number(kind, &truncated) {
        Some(number) if !text.contains(number) => Err("must include the full card number".into()),
        _ => restore_number(kind, data, text),
    }
}

fn restore_number(kind: TokenKind, data: &Value, text: String) -> Result<String, String> {
    let Some(number) = card_number(kind, data) else {
        return Ok(text);
    };
    let text = text.replace(&truncated(number, HIDDEN), number);
    match text.contains(HIDDEN) {
        true => Err(
            "must evaluate to the full card number, or to nothing of it but BIN and last four"
                .to_owned(),
        ),
        false => Ok(text),
    }
}

/// The member of a card's data that is its number.
const NUMBER: &str = "number";

/// The card number of data of a card type.
fn card_number(kind: TokenKind, data: &Value) -> Option<&str> {
    match kind {
        TokenKind::Card | TokenKind::NetworkToken => data.get(NUMBER)?.as_str(),
        TokenKind::CardNumber => data.as_str(),
        _ => None,
    }
}

/// Applies `in_number` to the number of a card, and `elsewhere` to all other text.
fn hide(
    kind: TokenKind,
    data: &Value,
    in_number: impl Fn(&str) -> String,
    elsewhere: impl Fn(&str) -> String,
) -> Cow<'_, Value> {
    let member = |(name, value): (&String, &Value)| match value {
        Value::String(number) if name == NUMBER => (name.clone(), in_number(number).into()),
        value => (elsewhere(name), map_text(value, &elsewhere)),
    };
    match data {
        _ if !kind.is_card() => Cow::Borrowed(data),
        Value::String(number) => Cow::Owned(in_number(number).into()),
        Value::Object(members) => Cow::Owned(members.iter().map(member).collect()),
        data => Cow::Owned(map_text(data, &elsewhere)),
    }
}

fn truncated(number: &str, hidden: char) -> String {
    let first = if number.len() < LONG_NUMBER { 6 } else { 8 };
    let last = number.len().saturating_sub(LAST);
    let digits = number.chars().enumerate();
    let truncate = |(position, digit)| match (first..last).contains(&position) {
        true => hidden,
        false => digit,
    };
    digits.map(truncate).collect()
}

/// Hides the digits of every script in runs that are as long as a card number. Only a letter ends a run.
fn hide_runs(text: &str) -> String {
    let is_digit = |c: char| c.is_numeric() || c == HIDDEN;
    let hidden = |c: char| if is_digit(c) { HIDDEN_ELSEWHERE } else { c };
    let runs = text.split_inclusive(|c: char| c.is_alphabetic() && !is_digit(c));
    let runs = runs.map(|run| match run.chars().filter(|c| is_digit(*c)).count() {
        SHORTEST_NUMBER.. => run.chars().map(hidden).collect(),
        _ => run.replace(HIDDEN, "*"),
    });
    runs.collect()
}

/// Applies a function to all text: strings, names of members, and numbers whose digits it changes.
fn map_text(value: &Value, map: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => map(text).into(),
        Value::Number(number) => {
            let digits = number.to_string();
            let mapped = map(&digits);
            match mapped == digits {
                true => value.clone(),
                false => mapped.into(),
            }
        }
        Value::Array(elements) => elements.iter().map(|one| map_text(one, map)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (map(name), map_text(value, map)))
            .collect(),
        Value::Null | Value::Bool(_) => value.clone(),
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
    fn runs_of_digits_in_other_members_are_hidden_whatever_they_are() {
        let hidden = "**** **** **** ****";
        let cases = [
            ("PAN 4147202464191053 exp", "PAN **************** exp"),
            ("PAN 4147202464191054 exp", "PAN **************** exp"),
            ("4147 2024 6419 1053", hidden),
            ("4147 2024 6419 1054", hidden),
            (
                "\u{ff14}147\u{2003}2024 6419 1053",
                "****\u{2003}**** **** ****",
            ),
            ("\u{1d7d2}147 2024 6419 1053", hidden),
            ("4147 20\u{2022}\u{2022} 6419 1053", hidden),
            ("94107, +1 555 01", "94107, +1 555 01"),
            ("14720246419", "14720246419"),
            ("\u{2022}", "*"),
        ];
        for (text, expected) in cases {
            let card = json!({"number": "4147202464191053", "raw": text, "list": [{text: text}]});
            let truncated = truncate(TokenKind::Card, &card).into_owned();
            assert_eq!(truncated["raw"], expected, "{text}");
            assert_eq!(truncated["list"], json!([{expected: expected}]), "{text}");
        }
        let card =
            json!({"number": "4147202464191053", "n": 4_147_202_464_191_053_u64, "small": 12});
        let truncated = truncate(TokenKind::Card, &card).into_owned();
        assert_eq!(
            (&truncated["n"], &truncated["small"]),
            (&hidden.replace(' ', "").into(), &12.into())
        );
        assert_eq!(
            truncate_to_zeros(TokenKind::Card, &card)["n"],
            "0000000000000000"
        );
    }

    #[test]
    fn ids_see_zeros_for_hidden_digits() {
        let number = Value::from("4147202464191053");
        assert_eq!(
            *truncate_to_zeros(TokenKind::CardNumber, &number),
            "4147202400001053"
        );
    }

    #[test]
    fn indexes_and_fingerprints_do_not_depend_on_text_in_other_members() {
        let number = "4147202464191053";
        for raw in [
            number,
            "4147202464191054",
            "41472024\u{2022}\u{2022}\u{2022}\u{2022}1053",
        ] {
            let card = json!({"number": number, "raw": raw});
            let shown = |data: &Value| Ok(data["raw"].as_str().unwrap().to_owned());
            let index = evaluate_index(TokenKind::Card, &card, shown);
            assert_eq!(index.unwrap(), "*".repeat(16), "{raw}");
            let whole = |data: &Value| Ok(data["number"].as_str().unwrap().to_owned());
            assert_eq!(
                evaluate_index(TokenKind::Card, &card, whole).unwrap(),
                number
            );
            assert_eq!(
                evaluate_fingerprint(TokenKind::Card, &card, whole).unwrap(),
                number
            );
        }
    }
}
