//! Properties of every template, mask, document and data.

use cloakroom_expressions::{Context, Document, Mask, OUTPUT_BYTES_MAX, Scope, Sources, Template};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Text composed of syntax elements, so that most of it gets past the first checks of the parser.
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
        "if",
        "elsif",
        "else",
        "endif",
        "unless",
        "case",
        "when",
        "for",
        "x in data",
        "endfor",
        "break",
        "assign x =",
        "capture x",
        "endcapture",
        "raw",
        "endraw",
        "==",
        "contains",
        "and",
        "(1..3)",
        "json",
        "'$..a'",
        "slice",
        "split",
        "times",
        "divided_by",
        "date",
        "token:",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn valid_expression() -> impl Strategy<Value = String> {
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
        "| split: '' | sort | join: '-'",
        "| slice: -3, 2",
        "| times: 1.5 | round: 2",
        "| divided_by: 7 | modulo: 3",
        "| plus: data | minus: 1 | abs",
        "| date: '%Y-%m-%d %H:%M:%S %z'",
        "| json: '$..a[?(@ > 1)]'",
        "| map: 'a' | uniq | compact | sum",
        "| where: 'a', 1 | first",
        "| url_encode | url_decode",
        "| base64_encode | base64_decode",
        "| escape | escape_once | strip_html",
        "| truncate: 5 | truncatewords: 1",
        "| card_mask: true, true, '#', '-'",
        "| card_exp: 'MM/YY'",
        "| replace: '', 'x'",
        "| alias_preserve_format: 1, 1",
        "| to_number | ceil",
    ]);
    ("[ -~]{0,3}", value, filter, "[ -~]{0,3}").prop_map(|(before, value, filter, after)| {
        format!("{before}{{{{ {value} {filter} }}}}{after}")
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", expression(), valid_expression()]
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

fn fill(bytes: &mut [u8]) {
    bytes.fill(7);
}

fn evaluate(template: &Template, data: &Value) -> Option<Value> {
    let scope = Scope {
        variables: &[("data", data)],
        sources: Sources {
            random: Some(&fill),
            ..Sources::default()
        },
    };
    template.evaluate(&scope).ok()
}

#[expect(
    clippy::unwrap_used,
    reason = "the filters in these properties parse and apply"
)]
fn apply_filter(text: &str, filter: &str) -> String {
    let template = format!("{{{{ data | {filter} }}}}");
    let template = Template::parse(Context::Mask, &template).unwrap();
    let result = evaluate(&template, &Value::from(text)).unwrap();
    result.as_str().unwrap().to_owned()
}

const CONTEXTS: [Context; 4] = [
    Context::IdAlias,
    Context::Fingerprint,
    Context::SearchIndex,
    Context::Mask,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn templates_do_not_panic(text in text(), data in json(".{0,20}".boxed())) {
        for context in CONTEXTS {
            if let Ok(template) = Template::parse(context, &text) {
                evaluate(&template, &data);
            }
        }
    }

    #[test]
    fn masks_do_not_panic(mask in json(text()), data in json(".{0,20}".boxed())) {
        if let Ok(mask) = Mask::parse(&mask) {
            let result = mask.apply(&data);
            prop_assert!(result.to_string().len() <= OUTPUT_BYTES_MAX);
        }
    }

    #[test]
    fn text_without_braces_is_unchanged(text in "[^{]{0,60}") {
        let template = Template::parse(Context::Mask, &text).unwrap();
        prop_assert_eq!(evaluate(&template, &json!({})), Some(Value::from(text)));
    }

    #[test]
    fn documents_do_not_panic(document in json(text()), data in json(".{0,20}".boxed())) {
        if let Ok(document) = Document::parse(Context::Proxy, &document) {
            let _ = document.fill(|_| Some(&data), &Sources::default());
        }
    }

    #[test]
    fn a_document_without_references_is_unchanged(document in json("[^{]{0,20}".boxed())) {
        let parsed = Document::parse(Context::Detokenize, &document).unwrap();
        let filled = parsed.fill(|_| None, &Sources::default()).unwrap();
        prop_assert_eq!(filled.to_string(), document.to_string());
    }

    #[test]
    fn inserted_values_are_not_evaluated(inner in expression()) {
        let parsed = Document::parse(Context::Detokenize, &json!(["{{ a }}", "<{{ a }}>"])).unwrap();
        let value = Value::from(&*inner);
        let filled = parsed.fill(|_| Some(&value), &Sources::default()).unwrap();
        prop_assert_eq!(filled, json!([inner, format!("<{inner}>")]));
    }

    #[test]
    fn a_single_output_is_unchanged(data in json(".{0,20}".boxed())) {
        let template = Template::parse(Context::Mask, "{{ data }}").unwrap();
        let result = evaluate(&template, &data).unwrap();
        prop_assert_eq!(result.to_string(), data.to_string());
    }

    #[test]
    fn encoding_round_trips(text in ".{0,40}") {
        for filter in [
            "base64_encode | base64_decode",
            "base64_url_safe_encode | base64_url_safe_decode",
            "url_encode | url_decode",
            "split: '' | join: ''",
            "append: 'x' | remove_last: 'x'",
        ] {
            prop_assert_eq!(&apply_filter(&text, filter), &text, "{}", filter);
        }
    }

    #[test]
    fn sums_and_differences_are_exact(a in any::<i64>(), b in any::<i64>(), places in 0..9_u32) {
        let decimal = |number: i64| {
            let digits = format!("{:0>10}", number.unsigned_abs());
            let (whole, rest) = digits.split_at(digits.len() - places as usize);
            let sign = if number < 0 { "-" } else { "" };
            let point = if places > 0 { "." } else { "" };
            format!("{sign}{whole}{point}{rest}")
        };
        let text = format!("to_number | plus: {0} | minus: {0} | to_string", decimal(b));
        let expected = apply_filter(&decimal(a), "to_number | to_string");
        let expected = if expected.trim_matches(['-', '0', '.']).is_empty() {
            expected.trim_start_matches('-').to_owned()
        } else {
            expected
        };
        prop_assert_eq!(apply_filter(&decimal(a), &text), expected);
    }

    #[test]
    fn reveal_shows_only_both_ends(
        text in "[0-9]{1,30}",
        first in 0..12_usize,
        last in 0..12_usize,
    ) {
        let result = apply_filter(&text, &format!("reveal: {first}, {last}"));

        let length = text.len();
        let expected = match length <= first + last {
            true => "X".repeat(length),
            false => {
                let hidden = "X".repeat(length - first - last);
                format!("{}{hidden}{}", &text[..first], &text[length - last..])
            }
        };
        prop_assert_eq!(result, expected);
    }

    #[test]
    fn card_mask_shows_only_bin_and_last_four(text in "[0-9]{1,24}") {
        let result = apply_filter(&text, "card_mask: true, true");

        let bin = if text.len() >= 16 { 8 } else { 6 };
        let digits = result.chars().filter(char::is_ascii_digit).count();
        let expected = if text.len() <= bin + 4 { 0 } else { bin + 4 };
        prop_assert_eq!(digits, expected);
    }

    #[test]
    fn an_alias_preserves_only_the_format(text in "[A-Za-z0-9 .@-]{0,30}") {
        let alias = apply_filter(&text, "alias_preserve_format");

        prop_assert_eq!(alias.chars().count(), text.chars().count());
        for (was, is) in text.chars().zip(alias.chars()) {
            let same_form = match was {
                'a'..='z' | 'A'..='Z' => is.is_ascii_lowercase(),
                '0'..='9' => is.is_ascii_digit(),
                other => is == other,
            };
            prop_assert!(same_form);
        }
    }

    #[test]
    fn reveal_last_shows_only_the_end(text in "[0-9 ]{5,30}", last in 0..4_usize) {
        let result = apply_filter(&text, &format!("reveal_last: {last}"));

        let hidden = text.len() - last;
        prop_assert_eq!(result, "X".repeat(hidden) + &text[hidden..]);
    }
}
