//! Search indexes and other expressions.

use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::{Value, json};

use super::{create, one_of_each_type};

/// Covers 3.9, 3.20, 2.11.
#[tokio::test]
async fn search_indexes_default_to_those_of_the_type() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let found = async |value: &str| {
        let query = json!({"query": format!("data:\"{value}\"")});
        let page = client.post("/v2/tokens/search", query).await;
        page.body["data"].as_array().unwrap().len()
    };
    let own = json!([
        "{{ data }}",
        "{{ data | replace: '-' }}",
        "{{ data | last4 }}"
    ]);

    for (kind, data, _) in one_of_each_type() {
        let shown = match kind {
            "social_security_number" | "employer_id_number" => own.clone(),
            _ => json!([]),
        };
        let marked = json!(["{{ 'mark' }}"]);
        for (given, shown) in [
            (json!(null), &shown),
            (json!([]), &json!([])),
            (marked.clone(), &marked),
        ] {
            let new = json!({"type": kind, "data": data, "search_indexes": given});
            let created = create(&client, new).await;
            assert_eq!(created.body["search_indexes"], *shown, "{kind} {given}");
        }
    }
    assert_eq!(found("mark").await, 9);
    for value in [
        "078-05-1120",
        "078051120",
        "1120",
        "12-3456789",
        "123456789",
        "6789",
    ] {
        assert_eq!(found(value).await, 1, "{value}");
    }
    assert_eq!(found("4242").await, 0);
}

/// Covers 3.15, 3.29, 10.23.
#[tokio::test]
async fn each_search_index_must_yield_one_non_empty_value() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let data = json!({
        "month": 4, "price": 19.90, "flag": false, "empty": "", "null": null, "list": [],
        "spaces": " ", "many": [{"x": 1}, {"x": 2}],
    });
    let create = async |indexes: Value| {
        client
            .post(
                "/tokens",
                json!({"type": "token", "data": data, "search_indexes": indexes}),
            )
            .await
    };

    let empty = [
        "{{ data.missing }}",
        "{{ data.empty }}",
        "{{ data.null }}",
        "{{ data.month.deep }}",
        "",
        "{{ data | json: '$.many[*].x' }}",
        "{{ data.month | divided_by: 0 }}",
    ];
    for expression in empty {
        let response = create(json!(["{{ data.month }}", expression])).await;
        assert_eq!(response.refused(), ["search_indexes[1]"], "{expression}");
    }
    let both = create(json!([
        "{{ data.missing }}",
        "{{ data.month }}",
        "{{ data.empty }}"
    ]))
    .await;
    assert_eq!(both.refused(), ["search_indexes[0]", "search_indexes[2]"]);

    let indexes = [
        "{{ data.month }}",
        "{{ data.price }}",
        "{{ data.flag }}",
        "{{ data.spaces }}",
        "m-{{ data.month }}",
    ];
    let created = create(json!(indexes)).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    for value in ["4", "19.9", "false", " ", "m-4"] {
        let query = json!({"query": format!("data:\"{value}\"")});
        let page = client.post("/v2/tokens/search", query).await;
        assert_eq!(
            page.body["data"][0]["id"], created.body["id"],
            "{value}: {}",
            page.body
        );
    }
}

/// Covers 3.17, 3.26, 3.27.
#[tokio::test]
async fn expressions_are_validated_on_create() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = |characters: usize| format!("{{{{ data }}}}{}", "x".repeat(characters - 10));

    let cases = [
        ("mask", json!("{{ data | nothing }}"), Some("mask")),
        ("mask", json!({"a": ["{{ data"]}), Some("mask.a[0]")),
        ("mask", json!({"a": ["{{ data | }}"]}), Some("mask.a[0]")),
        ("mask", json!("{% nothing %}"), Some("mask")),
        ("id", json!("{{ data | nothing }}"), Some("id")),
        ("id", json!("{{ data | card_exp }}"), Some("id")),
        (
            "fingerprint_expression",
            json!("{{ data | nothing }}"),
            Some("fingerprint_expression"),
        ),
        (
            "fingerprint_expression",
            json!("{{ data | alias_preserve_length }}"),
            Some("fingerprint_expression"),
        ),
        ("fingerprint_expression", json!(long(400)), None),
        (
            "fingerprint_expression",
            json!(long(401)),
            Some("fingerprint_expression"),
        ),
        (
            "search_indexes",
            json!(["{{ data | nothing }}"]),
            Some("search_indexes[0]"),
        ),
        (
            "search_indexes",
            json!(["{{ data | alias_card }}"]),
            Some("search_indexes[0]"),
        ),
        (
            "search_indexes",
            json!(["{{ data }}", "{{ data | alias_preserve_format }}"]),
            Some("search_indexes[1]"),
        ),
        ("search_indexes", json!([long(400)]), None),
        (
            "search_indexes",
            json!([long(401)]),
            Some("search_indexes[0]"),
        ),
        ("search_indexes", json!(vec!["{{ data }}"; 10]), None),
        (
            "search_indexes",
            json!(vec!["{{ data }}"; 11]),
            Some("search_indexes"),
        ),
    ];
    for (attribute, value, rejected) in cases {
        let mut new = json!({"type": "token", "data": "abc"});
        new[attribute] = value.clone();
        let response = client.post("/tokens", new).await;
        match rejected {
            Some(path) => assert_eq!(response.refused(), [path], "{attribute} {value}"),
            None => assert_eq!(
                response.status,
                StatusCode::CREATED,
                "{attribute} {value}: {}",
                response.body
            ),
        }
    }
}

/// I07: stored expressions cannot reference a security code.
///
/// Covers 3.28.
#[tokio::test]
async fn expressions_that_reference_the_security_code_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let expressions = [
        "{{ data.cvc }}",
        "{{ data['cvc'] }}",
        "{{ data | json: '$.cvc' }}",
        "{{ data.number }}-{{ data.cvc }}",
        "{% if data.cvc == '123' %}a{% else %}b{% endif %}",
    ];
    for kind in ["card", "network_token"] {
        let card = || json!({"type": kind, "data": {"number": "4242424242424242", "cvc": "123"}});
        let plain = create(&client, card()).await.id();
        for expression in expressions {
            for (attribute, value, path) in [
                (
                    "fingerprint_expression",
                    json!(expression),
                    "fingerprint_expression",
                ),
                (
                    "search_indexes",
                    json!(["{{ data.number }}", expression]),
                    "search_indexes[1]",
                ),
            ] {
                let mut new = card();
                new[attribute] = value.clone();
                let created = client.post("/tokens", new).await;
                let updated = client
                    .patch(&format!("/tokens/{plain}"), json!({(attribute): value}))
                    .await;
                assert_eq!(created.refused(), [path], "{kind} {expression}");
                assert_eq!(updated.refused(), [path], "{kind} {expression}");
            }
        }
        // An id is evaluated from the stored data, which excludes the security code.
        let mut new = card();
        new["id"] = json!("{{ data.cvc }}");
        assert_eq!(
            client.post("/tokens", new).await.refused(),
            ["id"],
            "{kind}"
        );
    }
    // In data of type `token`, `cvc` is an ordinary member.
    let generic =
        json!({"type": "token", "data": {"cvc": "123"}, "search_indexes": ["{{ data.cvc }}"]});
    create(&client, generic).await;
}
