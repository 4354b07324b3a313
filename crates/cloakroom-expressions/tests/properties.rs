//! What must hold for every text, mask and data.

use cloakroom_expressions::{Mask, OUTPUT_BYTES_MAX, Template};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Text made of what expressions are made of, so that most of it gets far into the parser.
fn expression() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{{",
        "}}",
        "{{-",
        "-}}",
        "{%",
        "%}",
        "|",
        ":",
        ",",
        ".",
        "[",
        "]",
        "'",
        "\"",
        " ",
        "-",
        "data",
        "nil",
        "true",
        "0",
        "4",
        "-1",
        "1.5",
        "99999999999999999999",
        "ä",
        "size",
        "first",
        "reveal_last",
        "reveal",
        "last4",
        "stringify",
        "json_stringify",
        "to_string",
        "shout",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn likely() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec!["data", "data.a", "data[0]", "data['ä'].b", "'x'", "7"]);
    let filter = prop::sample::select(vec![
        "",
        "| last4",
        "| reveal_last: 4",
        "| reveal: 1, 2",
        "| reveal: 1, 1, '#', '-'",
        "| stringify",
        "| to_string",
        ", reveal_last: 4",
    ]);
    ("[ -~]{0,3}", value, filter, "[ -~]{0,3}").prop_map(|(before, value, filter, after)| {
        format!("{before}{{{{ {value} {filter} }}}}{after}")
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", expression(), likely()]
}

fn json(leaf: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        leaf.prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![Just("a".to_owned()), Just("ä".to_owned()), ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_text_and_no_data_make_a_template_panic(text in text(), data in json(".{0,20}".boxed())) {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.evaluate(&data);
        }
    }

    #[test]
    fn no_mask_makes_reading_panic(mask in json(text()), data in json(".{0,20}".boxed())) {
        if let Ok(mask) = Mask::parse(&mask) {
            let shown = mask.apply(&data);
            prop_assert!(shown.to_string().len() <= OUTPUT_BYTES_MAX);
        }
    }

    #[test]
    fn text_without_braces_is_itself(text in "[^{]{0,60}") {
        let template = Template::parse(&text).unwrap();
        prop_assert_eq!(template.evaluate(&json!({})), Ok(Value::from(text)));
    }

    #[test]
    fn masked_text_shows_the_end_only(text in "[0-9 ]{5,30}", last in 0..4_usize) {
        let template = Template::parse(&format!("{{{{ data | reveal_last: {last} }}}}")).unwrap();

        let shown = template.evaluate(&Value::from(&*text)).unwrap();

        let hidden = text.len() - last;
        prop_assert_eq!(shown, "X".repeat(hidden) + &text[hidden..]);
    }
}
