//! The contexts of section 5, the default expressions of token types, and the documents of section 6.

use cloakroom_expressions::{
    CONFIGURATION, Context, Document, EvaluationError, Mask, ParseError, ReferenceKind, Scope,
    Sources, Template,
};
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "every template in these tables parses")]
fn text(context: Context, template: &str, data: &Value) -> Result<String, EvaluationError> {
    let metadata = json!({ "user": "u1" });
    let template = Template::parse(context, template).unwrap();
    template.evaluate_to_text(&Scope::of(&[("data", data), ("metadata", &metadata)]))
}

#[test]
fn section_5_variables_depend_on_the_context() {
    let template = "{{ data }}/{{ metadata.user }}";
    let cases = [
        (Context::Fingerprint, "d/u1"),
        (Context::SearchIndex, "d/"),
        (Context::IdAlias, "d/"),
        (Context::Mask, "d/"),
    ];
    for (context, expected) in cases {
        let result = text(context, template, &json!("d"));
        assert_eq!(result.as_deref(), Ok(expected), "{context:?}");
    }
}

#[test]
fn section_5_compared_values_are_neither_random_nor_empty() {
    for filter in [
        "alias_card",
        "alias_preserve_format",
        "alias_preserve_length",
    ] {
        let template = format!("{{% if data %}}{{{{ data | {filter} }}}}{{% endif %}}");
        for context in [Context::Fingerprint, Context::SearchIndex] {
            let error = Template::parse(context, &template).unwrap_err();
            assert!(matches!(error, ParseError::RandomFilter(name) if name == filter));
        }
        for context in [Context::IdAlias, Context::Mask] {
            assert!(Template::parse(context, &template).unwrap().is_random());
        }
    }
    for context in [Context::Fingerprint, Context::SearchIndex] {
        for data in [json!(null), json!("")] {
            let error = Err(EvaluationError::Empty);
            assert_eq!(text(context, "{{ data }}", &data), error);
        }
        let month = text(context, "{{ data }}", &json!(4));
        assert_eq!(month.as_deref(), Ok("4"));
    }
    assert_eq!(
        text(Context::IdAlias, "{{ data }}", &json!(null)).as_deref(),
        Ok("")
    );
}

#[test]
fn section_5_maximum_lengths_depend_on_the_context() {
    let cases = [
        (Context::Mask, 4000),
        (Context::IdAlias, 1000),
        (Context::SearchIndex, 400),
        (Context::Fingerprint, 400),
    ];
    for (context, longest) in cases {
        assert!(Template::parse(context, &"a".repeat(longest)).is_ok());
        let error = Template::parse(context, &"a".repeat(longest + 1)).unwrap_err();
        assert_eq!(error, ParseError::TooLong(longest));
    }
}

#[test]
fn section_5_a_template_of_a_mask_that_fails_is_null() {
    let mask = json!({
        "a": "{{ data.n | divided_by: 0 }}",
        "b": "{{ data.n | alias_card }}",
        "c": "{% for i in (1..2000) %}{% endfor %}",
        "d": "{{ data.n }}",
    });
    let result = Mask::parse(&mask).unwrap().apply(&json!({ "n": 7 }));
    assert_eq!(result, json!({ "a": null, "b": null, "c": null, "d": 7 }));
}

#[test]
fn token_type_defaults() {
    let ssn = json!("111-22-3333");
    let bank = json!({ "account_number": "123456789", "routing_number": "021000021" });
    let card = json!({ "number": "4242424242424242", "expiration_month": 4 });
    let cases = [
        ("{{ data | remove: '-' }}", &ssn, "111223333"),
        ("{{ data | replace: '-' }}", &ssn, "111223333"),
        ("{{ data | last4 }}", &ssn, "3333"),
        ("{{ data }}", &ssn, "111-22-3333"),
        (
            "{{ data.account_number }}|{{ data.routing_number }}",
            &bank,
            "123456789|021000021",
        ),
        ("{{ data.number }}", &card, "4242424242424242"),
        (
            "{{ data | stringify }}",
            &card,
            r#"{"number":"4242424242424242","expiration_month":4}"#,
        ),
    ];
    for (template, data, expected) in cases {
        let result = text(Context::Fingerprint, template, data);
        assert_eq!(result.as_deref(), Ok(expected), "{template}");
    }

    let mask = json!({
        "routing_number": "{{ data.routing_number }}",
        "account_number": "{{ data.account_number | reveal_last: 4 }}",
    });
    let result = Mask::parse(&mask).unwrap().apply(&bank);
    let expected = json!({ "routing_number": "021000021", "account_number": "XXXXX6789" });
    assert_eq!(result, expected);
}

#[test]
fn section_6_reference_kinds() {
    let cases = [
        ("{{ token: abc }}", ReferenceKind::Token, "abc"),
        ("{{token:abc}}", ReferenceKind::Token, "abc"),
        ("{{ abc }}", ReferenceKind::TokenData, "abc"),
        ("{{- abc -}}", ReferenceKind::TokenData, "abc"),
        (
            "{{ my id.number | json: '$.a' }}",
            ReferenceKind::TokenData,
            "my id.number",
        ),
        ("{{ 'quoted' }}", ReferenceKind::TokenData, "'quoted'"),
        ("{{ 12 }}", ReferenceKind::TokenData, "12"),
        ("{{ tokens: a }}", ReferenceKind::TokenData, "tokens: a"),
        (
            "{{ token_intent: a | last4 }}",
            ReferenceKind::TokenIntent,
            "a",
        ),
        ("{{ network_token: a }}", ReferenceKind::NetworkToken, "a"),
        ("{{ apple_pay: a }}", ReferenceKind::ApplePay, "a"),
        ("{{ google_pay: a }}", ReferenceKind::GooglePay, "a"),
    ];
    for (text, kind, id) in cases {
        let document = Document::parse(Context::Proxy, &json!(text)).unwrap();
        let [reference] = document.references() else {
            panic!("{text} has one reference");
        };
        assert_eq!((reference.kind, &*reference.id), (kind, id), "{text}");
    }
}

#[test]
fn section_6_invalid_references_are_rejected() {
    let cases = [
        ("{{ token: a | '$.data' }}", ParseError::NoFilter),
        (
            "{{ a | shout }}",
            ParseError::UnknownFilter("shout".to_owned()),
        ),
        ("{{ }}", ParseError::NoValue),
        ("{{ token: }}", ParseError::NoValue),
        ("{{ a {{ b }}", ParseError::BadReference),
        (
            "{{ config: a }}",
            ParseError::UnavailableReference("config"),
        ),
        (
            "{{ a | hmac: 'sha-1', 'k' }}",
            ParseError::NotEncoded("hmac"),
        ),
    ];
    for (text, expected) in cases {
        let error = Document::parse(Context::Detokenize, &json!({ "a": [text] })).unwrap_err();
        assert_eq!(error.error, expected, "{text}");
        assert_eq!(error.path, "a[0]");
    }
}

#[test]
fn section_6_references_are_replaced_by_their_values() {
    let document = json!({
        "{{ key }}": "{{ card }}",
        "month": "{{ card | json: '$.month' }}",
        "text": "no {{ card | json: '$.number' | last4 }} and {{ card | json: '$.month' }}",
        "whole": "{{ token: card | json: '$.data.month' }}",
        "spaced": " {{- card | json: '$.month' -}} ",
        "left": ["{{ open", "}} {% if %}", 1, null, true],
        "raw": "{% raw %}{{ card }}{% endraw %}",
        "mixed": "{% raw %}{{{% endraw %}{{ card | json: '$.month' }}",
    });
    let data = json!({ "number": "{{ other }}1234", "month": 4 });
    let token = json!({ "data": data });

    let parsed = Document::parse(Context::Detokenize, &document).unwrap();
    assert_eq!(parsed.references().len(), 7);
    let filled = parsed.fill(
        |reference| match (reference.kind, &*reference.id) {
            (ReferenceKind::TokenData, "card") => Some(&data),
            (ReferenceKind::Token, "card") => Some(&token),
            _ => None,
        },
        &Sources::default(),
    );

    let expected = json!({
        "{{ key }}": data,
        "month": 4,
        "text": "no 1234 and 4",
        "whole": 4,
        "spaced": "4",
        "left": ["{{ open", "}} {% if %}", 1, null, true],
        "raw": "{{ card }}",
        "mixed": "{{4",
    });
    assert_eq!(filled, Ok(expected));
    let unresolved = parsed.fill(|_| None, &Sources::default()).unwrap_err();
    assert_eq!(unresolved.error, EvaluationError::Unresolved);
    assert_eq!(unresolved.path, "{{ key }}");
    let deep = json!({ "a": [1, { "b": "<{{ card | to_number }}>" }] });
    let deep = Document::parse(Context::Detokenize, &deep).unwrap();
    let wrong = deep.fill(|_| Some(&data), &Sources::default()).unwrap_err();
    assert_eq!(wrong.path, "a[1].b");
}

#[test]
fn configuration_values_are_keys_of_signatures_only() {
    for text in [
        "{{ config: KEY }}",
        "{{ proxy.config.KEY }}",
        "{{ proxy.config }}",
    ] {
        let error = Document::parse(Context::Proxy, &json!(text)).unwrap_err();
        assert_eq!(
            error.error,
            ParseError::UnavailableReference("config"),
            "{text}"
        );
    }
    let request = json!({"body": "b"});
    let configuration = json!({"KEY": "secretKeyValue"});
    let scope = Scope {
        variables: &[("proxy", &request), (CONFIGURATION, &configuration)],
        sources: Sources::default(),
    };
    for text in [
        "{{ proxy.body | append: proxy.config.KEY }}",
        "{{ proxy.body | append: proxy['config']['KEY'] }}",
        "{{ proxy.body | prepend: proxy.config }}",
        "{{ proxy.body | hmac: proxy.config.KEY, 'k' | to_base16 }}",
    ] {
        let document = Document::parse(Context::Proxy, &json!(text)).unwrap();
        let filled = document.fill_in(&scope, |_| request.get("body"));
        assert!(!format!("{filled:?}").contains("secretKeyValue"), "{text}");
    }
}

#[test]
fn closed_expressions_are_recognized_by_their_text() {
    let cases = [
        ("{{ a }}", true),
        ("{{ a | json: '$.number' }}", true),
        ("{{ a | json: '$.number' | last4 | to_string }}", true),
        ("{{ a | json: \"$['number']\" | card_bin }}", true),
        ("{{ a | json: '$.month' | pad_left: 2, '0' }}", true),
        ("{{ a | card_exp: 'MM/YY' }}", true),
        ("{{ a | card_exp: 'MM of YY' }}", false),
        (
            "{{ a | json: '$.number' | pad_left: 20, '0' | card_bin }}",
            false,
        ),
        ("{{ a | pad_right: 8, '0' | last4 }}", false),
        ("{{ a | pad_right: 8, '0' | to_string }}", true),
        ("{{ a | json: '$..number' }}", false),
        ("{{ a | json: '$.*' }}", false),
        ("{{ a | json: '$[?(@.number > 1)]' }}", false),
        ("{{ a | json: proxy.x }}", false),
        ("{{ a | pad_left: proxy.x, '0' }}", false),
        ("{{ a | slice: 0 }}", false),
        ("{{ a | to_number }}", false),
        ("{{ a | card_bin: '4' }}", false),
        ("{{ a | append: 'x' }}", false),
        ("{{ proxy.request.body }}", true),
        ("{{ proxy.request.body | slice: 0 }}", false),
        (
            "{{ proxy.request.body | append: proxy.x | hmac: 'sha-256', proxy.config.K | to_base16 | downcase }}",
            true,
        ),
        (
            "{{ proxy.request.body | hmac: 'sha-256', 'k' | to_base16 }}",
            false,
        ),
        ("{{ proxy.request.body | to_base64 }}", false),
    ];
    for (text, expected) in cases {
        let document = Document::parse(Context::Proxy, &json!({ "x": [text] })).unwrap();
        let insertions = document.insertions();
        assert_eq!(insertions[0].is_closed, expected, "{text}");
        assert_eq!(insertions[0].path, "x[0]");
    }
}
