//! Detokenizing documents: expressions, filters and transforms.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{bank, create, detokenize, start, tokenize};

/// Covers 12.1.
#[tokio::test]
async fn detokenize_reverses_tokenize() {
    let (_vault, _, client) = start().await;
    let document = json!({"a": "text", "b": [19.5, {"c": true}], "d": null, "e": {"f": "g"}});

    let tokenized = tokenize(&client, document.clone()).await;
    let mut expressions = tokenized;
    to_expressions(&mut expressions);
    let response = client.post("/detokenize", expressions).await;

    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(response.body.to_string(), document.to_string());
}

fn to_expressions(value: &mut Value) {
    match value {
        Value::String(id) => *value = json!(format!("{{{{ {id} }}}}")),
        Value::Array(elements) => elements.iter_mut().for_each(to_expressions),
        Value::Object(members) => members.values_mut().for_each(to_expressions),
        _ => {}
    }
}

/// Covers 12.8.
#[tokio::test]
async fn a_lone_expression_keeps_its_type_and_surrounding_text_makes_a_string() {
    let (_vault, _, client) = start().await;

    let cases = [
        ("\"text\"", "text"),
        ("\"\"", ""),
        ("19.90", "19.90"),
        ("1e+400", "1e+400"),
        ("0", "0"),
        ("true", "true"),
        ("false", "false"),
        ("[1,[2.50,null]]", "[1,[2.50,null]]"),
        (r#"{"z":1,"a":{"b":"c"}}"#, r#"{"z":1,"a":{"b":"c"}}"#),
    ];
    for (data, text) in cases {
        let new = format!(r#"{{"type":"token","data":{data}}}"#);
        let created = client.post_text("/tokens", &new, "application/json").await;
        let id = created.id();

        let alone = [
            format!("{{{{ {id} }}}}"),
            format!("{{{{{id}}}}}"),
            format!("{{{{ token: {id} | json: '$.data' }}}}"),
            format!("{{{{token:{id}|json:'$.data'}}}}"),
        ];
        for expression in alone {
            let body = detokenize(&client, json!({"a": [expression]})).await;
            assert_eq!(body["a"][0].to_string(), data, "{expression}");
        }
        let alone = detokenize(&client, json!(format!("{{{{ {id} }}}}"))).await;
        assert_eq!(alone.to_string(), data);
        let around = [
            (format!("<{{{{ {id} }}}}>"), format!("<{text}>")),
            (format!(" {{{{ {id} }}}}"), format!(" {text}")),
            (
                format!("{{{{ {id} }}}}{{{{ {id} }}}}"),
                format!("{text}{text}"),
            ),
            (format!("a {{{{- {id} -}}}} b"), format!("a{text}b")),
        ];
        for (expression, expected) in around {
            assert_eq!(
                detokenize(&client, json!(expression)).await,
                json!(expected)
            );
        }
    }
}

/// Covers 12.8.
#[tokio::test]
async fn filters_apply_to_token_data() {
    let (_vault, _, client) = start().await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030});
    let card = create(&client, json!({"type": "card", "data": data})).await;
    let name = create(&client, json!({"type": "token", "data": "John Doe"})).await;

    let cases = [
        (
            format!("{{{{ {name} | split: ' ' | last | upcase }}}}"),
            json!("DOE"),
        ),
        (
            format!("{{{{ {card} | json: '$.number' | last4 }}}}"),
            json!("4242"),
        ),
        (
            format!("{{{{ {card} | json: '$.expiration_month' }}}}"),
            json!(4),
        ),
        (
            format!("{{{{ {card} | json: \"$.expiration_month\" | pad_left: 2, '0' }}}}"),
            json!("04"),
        ),
        (
            format!("{{{{ {card} | card_exp: 'MM/YY' }}}}"),
            json!("04/30"),
        ),
        (format!("{{{{ {card} | json: '$.nothing' }}}}"), json!(null)),
        (
            format!("<{{{{ {card} | json: '$.nothing' }}}}>"),
            json!("<>"),
        ),
        (
            format!("{{{{ token: {card} | json: '$.type' }}}}"),
            json!("card"),
        ),
        (
            format!("{{{{ token: {card} | json: '$.containers[0]' }}}}"),
            json!("/pci/high/"),
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(
            detokenize(&client, json!(expression)).await,
            expected,
            "{expression}"
        );
    }
}

/// Covers 12.5.
#[tokio::test]
async fn values_are_transformed_as_in_a_read() {
    use Permission::{TokenRead, TokenUse};
    let (vault, tenant, writer) = start().await;
    let by_rule = |transform| {
        let mut granted = grants(&[TokenUse]);
        granted.rules = vec![rule(1, "/", transform, &[TokenRead])];
        granted
    };
    let new = json!({"type": "token", "data": "12345678", "mask": "{{ data | reveal_last: 4 }}"});
    let masked = create(&writer, new).await;
    let bare = create(&writer, json!({"type": "token", "data": "12345678"})).await;
    let document = json!([
        format!("{{{{ {masked} }}}}"),
        format!("<{{{{ {masked} }}}}>"),
        format!("{{{{ token: {masked} | json: '$.data' }}}}"),
        format!("{{{{ {bare} }}}}"),
        format!("<{{{{ {bare} | json: '$.a' }}}}>"),
    ]);

    let cases = [
        (
            grants(&[TokenRead]),
            json!(["XXXX5678", "<XXXX5678>", "XXXX5678", null, "<>"]),
        ),
        (
            by_rule(Transform::Mask),
            json!(["XXXX5678", "<XXXX5678>", "XXXX5678", null, "<>"]),
        ),
        (
            by_rule(Transform::Redact),
            json!([null, "<>", null, null, "<>"]),
        ),
        (
            by_rule(Transform::Reveal),
            json!(["12345678", "<12345678>", "12345678", "12345678", "<>"]),
        ),
    ];
    for (granted, expected) in cases {
        let client = vault.client(&tenant, granted).await;
        assert_eq!(detokenize(&client, document.clone()).await, expected);
    }
}

/// Covers 12.6, 12.7.
#[tokio::test]
async fn token_expressions_return_the_token_with_card_enrichments() {
    use Permission::TokenRead;
    let (vault, tenant, writer) = start().await;
    let masking = vault.client(&tenant, grants(&[TokenRead])).await;
    let mut redacting = grants(&[]);
    redacting.rules = vec![rule(1, "/", Transform::Redact, &[TokenRead])];
    let redacting = vault.client(&tenant, redacting).await;
    let card =
        json!({"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030});
    let amex = json!("378282246310005");

    let cases = [
        ("card", card.clone(), Some(("42424242", "4242"))),
        ("card_number", amex, Some(("378282", "0005"))),
        ("network_token", card, None),
        ("bank", bank(), None),
        ("token", json!({"a": [1.5]}), None),
    ];
    for (kind, data, details) in cases {
        let new = json!({"type": kind, "data": data, "metadata": {"k": "v"}});
        let id = create(&writer, new).await;
        for client in [&writer, &masking, &redacting] {
            let read = client.get(&format!("/tokens/{id}")).await.body;
            let expression = json!({"it": format!("{{{{ token: {id} }}}}")});
            let mut whole = detokenize(client, expression).await["it"].take();

            let enrichments = whole.as_object_mut().unwrap().shift_remove("enrichments");
            assert_eq!(whole, read, "{kind}");
            let card_details = enrichments.map(|card_details| card_details["card_details"].clone());
            let expected = details.map(|(bin, last4)| json!({"bin": bin, "last4": last4}));
            assert_eq!(card_details, expected, "{kind}");
            assert_eq!(read.get("enrichments"), None, "{kind}");
            assert_eq!(whole.get("_extras"), None, "{kind}");
        }
        if let Some((bin, _)) = details {
            let path = "$.enrichments.card_details.bin";
            let expression = format!("{{{{ token: {id} | json: '{path}' }}}}");
            assert_eq!(detokenize(&masking, json!(expression)).await, bin);
        }
    }
}

/// Covers 12.1, 12.10.
#[tokio::test]
async fn other_values_are_returned_unchanged() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": "x"})).await;

    let texts = [
        "null",
        "true",
        "19.90",
        "\"text\"",
        "\"\"",
        "{}",
        "[]",
        r#""{ {x} }""#,
        r#""{{ unclosed""#,
        r#""closed }}""#,
        r#""{{ x }""#,
        r#"{"z":1e+400,"a":[null,{"b":"é\n"}]}"#,
        r#"{"type":"token","data":"x"}"#,
    ];
    for text in texts {
        let response = client
            .post_text("/detokenize", text, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::OK, "{text}");
        assert_eq!(String::from_utf8(response.bytes).unwrap(), text);
    }
    // Member names are not evaluated.
    let expression = format!("{{{{ {id} }}}}");
    let document = json!({ expression.clone(): { "{{ unknown }}": [expression.clone()] } });
    let expected = json!({ expression: { "{{ unknown }}": ["x"] } });
    assert_eq!(detokenize(&client, document).await, expected);
}

/// Covers 12.8.
#[tokio::test]
async fn token_data_is_not_evaluated_again() {
    let (_vault, _, client) = start().await;
    let secret = create(&client, json!({"type": "token", "data": "secret"})).await;
    let expression = format!("{{{{ {secret} }}}}");
    let data = json!({"a": expression, "{{ key }}": 1});
    let object = create(&client, json!({"type": "token", "data": data})).await;
    let half = create(&client, json!({"type": "token", "data": "{{ "})).await;

    let document = json!([
        format!("{{{{ {object} }}}}"),
        format!("{{{{ {object} | json: '$.a' }}}}"),
        format!("<{{{{ {object} | json: '$.a' }}}}>"),
        format!("{{{{ {half} }}}}{secret} }}}}"),
    ]);
    let body = detokenize(&client, document).await;

    assert_eq!(body[0], data);
    assert_eq!(body[1], expression);
    assert_eq!(body[2], format!("<{expression}>"));
    assert_eq!(body[3], format!("{{{{ {secret} }}}}"));
}

/// Covers 12.8.
#[tokio::test]
async fn custom_ids_are_resolved() {
    let (_vault, _, client) = start().await;
    let names = [
        "order 17",
        "john.doe@example.com",
        "käse: 20 €",
        "9EA0B7C7-FB9C-4D6A-8F7B-123456789ABC",
        // Contains digits that look like a card number.
        "49b56700-4912-4733-8318-9e9a0e055286",
        "-12",
        "'quoted'",
        "token",
        "a - b",
    ];
    for name in names {
        create(&client, json!({"id": name, "type": "token", "data": name})).await;
        for expression in [
            format!("{{{{ {name} }}}}"),
            format!("{{{{token:   {name}|json:'$.data'}}}}"),
        ] {
            let data = detokenize(&client, json!(expression)).await;
            assert_eq!(data, name, "{expression}");
        }
    }
}
