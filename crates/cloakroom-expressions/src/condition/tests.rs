//! Tests of conditions and comparisons.

use serde_json::json;

use super::*;
use crate::{Context, Scope};

fn holds(text: &str) -> Result<bool, EvaluationError> {
    let data = json!({ "n": 12, "s": "abc", "l": [1, "x"], "o": { "k": 1 }, "w": " ", "e": [] });
    let variables = [("data", &data)];
    let environment = Environment::new(Context::Mask, &Scope::of(&variables));
    let condition = Condition::parse(text).unwrap().unwrap();
    condition.holds(&environment, &mut Budget::default())
}

#[test]
fn section_1_conditions_evaluate_as_in_liquid() {
    let cases = [
        ("data.n", true),
        ("data.missing", false),
        ("false", false),
        ("0", true),
        ("''", true),
        ("data.n == 12", true),
        ("data.n == 12.0", true),
        ("data.n == '12'", false),
        ("data.n != 13", true),
        ("data.n <> 12", false),
        ("data.n < 13", true),
        ("data.n>12", false),
        ("data.n <= 12", true),
        ("data.n >= 12.5", false),
        ("data.s < 'abd'", true),
        ("data.missing < 1", false),
        ("data.s contains 'b'", true),
        ("data.l contains 'x'", true),
        ("data.l contains 1.0", true),
        ("data.l contains 2", false),
        ("data.o contains 'k'", true),
        ("data.missing contains 'k'", false),
        ("data.missing == nil", true),
        ("data.e == empty", true),
        ("'' == empty", true),
        ("data.w == empty", false),
        ("data.w == blank", true),
        ("data.missing == blank", true),
        ("data.l == empty", false),
        ("true or false and false", true),
        ("false and false or true", false),
        ("false or true and true", true),
    ];
    for (text, expected) in cases {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn values_of_different_types_are_not_comparable() {
    for text in ["data.n < 'a'", "data.l > 1", "true >= false"] {
        assert_eq!(holds(text), Err(EvaluationError::NotComparable), "{text}");
    }
}

#[test]
fn malformed_conditions_are_rejected() {
    for text in ["", "==", "a ==", "a and", "a b", "a == b c", "and"] {
        let parsed = Condition::parse(text).map(|found| found.is_some());
        assert_eq!(parsed, Ok(text == "and"), "{text}");
    }
    let chain = "a and ".repeat(DEPTH_MAX + 1) + "a";
    assert_eq!(Condition::parse(&chain).unwrap_err(), ParseError::TooDeep);
}
