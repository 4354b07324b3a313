//! Documents that cannot be tokenized.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{bank, count_rows, create, start, tokenize};

/// Covers 11.10.
#[tokio::test]
async fn a_document_without_values_is_rejected() {
    let (vault, _, client) = start().await;

    for document in [
        "null",
        "{}",
        "[]",
        r#"{"a":null}"#,
        r#"[[],{"b":[null,{}]}]"#,
    ] {
        let response = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(response.refused(), ["body"], "{document}");
    }
    assert_eq!(count_rows(&vault).await, 0);
}

#[tokio::test]
async fn tokenize_rejects_invalid_json_and_other_media_types() {
    let (vault, _, client) = start().await;

    for document in ["", "{", "[1,]", "1 2"] {
        let response = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(response.refused(), ["body"], "{document}");
    }
    let response = client.post_text("/tokenize", "\"x\"", "text/plain").await;
    assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(count_rows(&vault).await, 0);
}

/// Covers 11.8, 11.11.
#[tokio::test]
async fn one_rejected_element_rejects_the_document() {
    let (vault, tenant, writer) = start().await;
    let taken = cloakroom::ids::new_uuid().to_string();
    let existing = json!({
        "id": taken,
        "type": "token",
        "data": "there",
        "deduplicate_token": true,
    });
    create(&writer, existing).await;
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(
            1,
            "/general/",
            Transform::Reveal,
            &[Permission::TokenCreate],
        ),
        rule(2, "/pci/", Transform::Reveal, &[Permission::TokenCreate]),
    ];
    let client = vault.client(&tenant, granted).await;
    let before = count_rows(&vault).await;

    let token = |changed: Value| {
        let mut token = json!({"type": "token", "data": "x"});
        for (name, value) in changed.as_object().unwrap() {
            token[name] = value.clone();
        }
        token
    };
    let twice = json!([token(json!({"id": "one"})), token(json!({"id": "one"}))]);
    let past = "2020-01-01";
    let invalid = StatusCode::BAD_REQUEST;
    #[rustfmt::skip]
    let cases = [
        (token(json!({"type": "visa"})), invalid),
        (json!({"type": "card", "data": {"number": "1"}}), invalid),
        (token(json!({"search_indexes": ["{{ data.none }}"]})), invalid),
        (token(json!({"id": "{{ data.none }}"})), invalid),
        (token(json!({"expires_at": past})), invalid),
        (token(json!({"expires_at": past, "deduplicate_token": true})), invalid),
        (token(json!({"containers": ["/elsewhere/"]})), StatusCode::FORBIDDEN),
        (token(json!({"type": "bank", "data": bank()})), StatusCode::FORBIDDEN),
        (token(json!({"id": taken})), StatusCode::CONFLICT),
        (twice, StatusCode::CONFLICT),
    ];
    let valid = json!({"type": "token", "data": "fine", "deduplicate_token": true});
    let card = json!({"type": "card", "data": {"number": "4242424242424242", "cvc": "123"}});
    for (rejected, status) in cases {
        let orders = [
            json!(["first", valid, card, rejected]),
            json!({"a": rejected, "b": valid, "c": "last"}),
        ];
        for document in orders {
            let response = client.post("/tokenize", document.clone()).await;
            assert_eq!(response.status, status, "{document}: {}", response.body);
            assert_eq!(response.body["status"], status.as_u16());
            assert_eq!(count_rows(&vault).await, before, "{document}");
        }
    }
    // The rejected documents do not block a valid one.
    tokenize(&client, json!(["first", valid, card])).await;
}

/// Covers 11.8.
#[tokio::test]
async fn an_id_used_by_two_elements_is_a_conflict() {
    let (_vault, _, client) = start().await;
    let token = json!({"id": "order-17", "type": "token", "data": "x"});
    create(
        &client,
        json!({"id": "order-18", "type": "token", "data": "x"}),
    )
    .await;

    let twice = client.post("/tokenize", json!([token, token])).await;
    let mut other = token.clone();
    other["id"] = json!("order-18");
    let taken = client.post("/tokenize", json!([token, other])).await;

    assert_eq!(twice.status, StatusCode::CONFLICT);
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert_eq!(twice.bytes, taken.bytes);
}

/// Covers 11.14.
#[tokio::test]
async fn errors_name_the_path_of_the_element() {
    let (_vault, _, client) = start().await;
    let card = |number: &str| json!({"type": "card", "data": {"number": number}});
    let past = json!({"type": "token", "data": 1, "expires_at": "2020-01-01"});
    let future = json!({"type": "token", "data": 1, "expires_at": "2040-01-01"});

    let cases = [
        (
            json!({"primary_card": card("1")}),
            vec!["primary_card.data.number"],
        ),
        (
            json!(["a", "b", {"type": "visa", "data": 1}]),
            vec!["[2].type"],
        ),
        (card("1"), vec!["data.number"]),
        (json!([[card("1")]]), vec!["[0][0].data.number"]),
        (json!({"a": [{"b": card("1")}]}), vec!["a[0].b.data.number"]),
        (
            json!({"a": card("1"), "b": {"type": "x", "data": 1, "metadata": {"k": 1}}, "c": 1}),
            vec!["a.data.number", "b.metadata.k", "b.type"],
        ),
        (
            json!({"a": {"type": "token", "data": 1, "containers": "/a/"}}),
            vec!["a.containers"],
        ),
        (
            json!([{"type": "token", "data": "x", "search_indexes": ["{{ data }}", "{{ data.a }}"]}]),
            vec!["[0].search_indexes[1]"],
        ),
        (
            json!([{"type": "token", "data": "x", "fingerprint_expression": "{{ data.a }}"}]),
            vec!["[0].fingerprint_expression"],
        ),
        (
            json!([{"type": "token", "data": "x", "id": "{{ data }}"}]),
            vec!["[0].id"],
        ),
        (
            json!({"a": {"type": "token", "data": null}}),
            vec!["a.data"],
        ),
        (json!([future, past, "x"]), vec!["[1].expires_at"]),
        (
            json!({"a": future, "b": {"c": past}}),
            vec!["b.c.expires_at"],
        ),
    ];
    for (document, rejected) in cases {
        let response = client.post("/tokenize", document.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(response.refused(), rejected, "{document}");
        let text = String::from_utf8(response.bytes).unwrap();
        assert!(!text.contains("visa"), "{text}");
    }
}

/// Covers 11.11.
#[tokio::test]
async fn each_element_requires_the_permission_in_its_own_container() {
    use Permission::{TokenCreate, TokenRead};
    let (vault, tenant, writer) = start().await;
    let mut granted = grants(&[TokenRead]);
    granted.rules = vec![
        rule(1, "/open/", Transform::Reveal, &[TokenCreate]),
        rule(2, "/closed/", Transform::Redact, &[TokenCreate]),
        rule(3, "/pci/", Transform::Mask, &[TokenCreate]),
    ];
    let client = vault.client(&tenant, granted).await;
    let token = |container: &str| json!({"type": "token", "data": "x", "mask": "m", "containers": [container]});
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});

    let allowed = json!([token("/open/"), token("/closed/a/"), token("/pci/"), card]);
    let body = tokenize(&client, allowed).await;
    let scalar = client.post("/tokenize", json!("x")).await;
    let mixed = client
        .post("/tokenize", json!([token("/open/"), token("/")]))
        .await;
    let reader = vault.client(&tenant, grants(&[TokenRead])).await;
    let reader = reader.post_text("/tokenize", "{", "application/json").await;

    assert_eq!(body[0]["data"], "x");
    assert_eq!(body[1].get("data"), None);
    assert_eq!(body[2]["data"], "m");
    assert_eq!(body[3]["data"]["number"], "XXXXXXXXXXXX4242");
    // Scalars are stored in `/general/high/`.
    assert_eq!(scalar.status, StatusCode::FORBIDDEN);
    assert_eq!(mixed.status, StatusCode::FORBIDDEN);
    assert_eq!(reader.status, StatusCode::FORBIDDEN);
    let listed = writer.get("/v2/tokens").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 4);
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
        .await;
    let public = vault.client_with(Some(&public.key));
    let body = tokenize(&public, json!(["x", card])).await;
    assert_eq!(body[1]["data"]["number"], "XXXXXXXXXXXX4242");
}
