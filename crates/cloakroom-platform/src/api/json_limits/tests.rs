//! Each limit holds at its edge.

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
