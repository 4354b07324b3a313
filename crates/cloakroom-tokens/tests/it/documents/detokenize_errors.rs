//! Documents that cannot be detokenized.

use std::time::Duration;

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{TestDatabase, TestVault, grants, rule};
use http::StatusCode;
use serde_json::json;

use super::{create, detokenize, start};

/// Covers 12.2.
#[tokio::test]
async fn detokenize_accepts_up_to_the_limit_of_expressions() {
    let default = TestVault::start().await;
    let larger = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.detokenize = 7;
    })
    .await;
    for (vault, limit) in [(&default, 5), (&larger, 7)] {
        let client = vault.revealing_client().await;
        let id = create(&client, json!({"type": "token", "data": "x"})).await;
        let expression = format!("{{{{ {id} }}}}");

        let allowed = [
            (json!(vec![&expression; limit]), json!(vec!["x"; limit])),
            (json!(expression.repeat(limit)), json!("x".repeat(limit))),
        ];
        for (document, expected) in allowed {
            assert_eq!(detokenize(&client, document).await, expected);
        }
        // Each occurrence counts, even of the same or an unknown token.
        let too_many = [
            json!(vec![&expression; limit + 1]),
            json!(expression.repeat(limit + 1)),
            json!({"a": vec![&expression; limit], "b": {"c": format!("-{expression}-")}}),
            json!(vec!["{{ unknown }}"; limit + 1]),
        ];
        for document in too_many {
            let response = client.post("/detokenize", document.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
            assert_eq!(response.refused(), ["body"], "{document}");
        }
    }
}

/// Covers 12.3.
#[tokio::test]
async fn unknown_ids_are_listed_in_the_error() {
    let (vault, _, client) = start().await;
    let known = create(&client, json!({"type": "token", "data": "x"})).await;
    let deleted = create(&client, json!({"type": "token", "data": "x"})).await;
    client.delete(&format!("/tokens/{deleted}")).await;
    let foreign = vault.revealing_client().await;
    let foreign = create(&foreign, json!({"type": "token", "data": "x"})).await;

    let cases = [
        (vec!["order 17"], "order 17"),
        (vec![&known, &deleted], &*deleted),
        (vec![&foreign, &known], &*foreign),
        (vec!["one", &known, "two", "one", "two"], "one, two"),
    ];
    for (ids, listed) in cases {
        let expressions: Vec<String> = ids.iter().map(|id| format!("{{{{ {id} }}}}")).collect();
        let response = client.post("/detokenize", json!(expressions)).await;
        let detail = format!("Failed to detokenize some tokens: {listed}");
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(response.body["detail"], detail);
        assert_eq!(response.body["errors"], json!({}));
    }
    let whole = client
        .post("/detokenize", json!("<{{ token: order 17 }}>"))
        .await;
    assert_eq!(
        whole.body["detail"],
        "Failed to detokenize some tokens: order 17"
    );
}

/// Covers 12.3, 8.11.
#[tokio::test]
async fn expired_tokens_are_not_found() {
    let (vault, _, client) = start().await;
    let database = vault.database.connect().await;
    let now: jiff::Timestamp = database
        .query_one("select now()", &[])
        .await
        .unwrap()
        .get(0);
    let soon = (now + jiff::SignedDuration::from_secs(2)).to_string();
    let id = create(
        &client,
        json!({"type": "token", "data": "x", "expires_at": soon}),
    )
    .await;
    let expression = json!(format!("{{{{ {id} }}}}"));

    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let response = loop {
        let response = client.post("/detokenize", expression.clone()).await;
        if response.status != StatusCode::OK {
            break response;
        }
        assert_eq!(response.body, "x");
        assert!(
            std::time::Instant::now() < deadline,
            "the token does not expire"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    let detail = format!("Failed to detokenize some tokens: {id}");
    assert_eq!(response.body["detail"], detail);
}

/// Covers 12.4.
#[tokio::test]
async fn one_forbidden_token_rejects_the_document() {
    use Permission::{TokenRead, TokenSearch};
    let (vault, tenant, writer) = start().await;
    let mut granted = grants(&[TokenSearch]);
    granted.rules = vec![rule(1, "/open/", Transform::Reveal, &[TokenRead])];
    let client = vault.client(&tenant, granted).await;
    let token = |container: &str| json!({"type": "token", "data": "x", "containers": [container]});
    let open = create(&writer, token("/open/")).await;
    let closed = create(&writer, token("/closed/")).await;

    let alone = detokenize(&client, json!([format!("{{{{ {open} }}}}")])).await;
    let documents = [
        json!([format!("{{{{ {open} }}}}"), format!("{{{{ {closed} }}}}")]),
        json!(format!("{{{{ token: {closed} | json: '$.id' }}}}")),
        json!(format!("{{{{ {closed} }}}}")),
    ];

    assert_eq!(alone, json!(["x"]));
    for document in documents {
        let response = client.post("/detokenize", document).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
        assert!(!String::from_utf8(response.bytes).unwrap().contains("\"x\""));
    }
    // A caller without any read permission is rejected before the document is parsed.
    let searcher = vault.client(&tenant, grants(&[TokenSearch])).await;
    for document in ["{", "\"{{ nothing }}\"", "1"] {
        let response = searcher
            .post_text("/detokenize", document, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
    }
}

/// Covers 12.12.
#[tokio::test]
async fn expressions_for_other_resources_are_rejected() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": "x"})).await;

    for expression in [
        format!("{{{{ config: {id} }}}}"),
        format!("<{{{{config:{id}|x}}}}>"),
    ] {
        let response = client
            .post("/detokenize", json!({"a": ["b", expression]}))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{expression}");
        assert_eq!(response.refused(), ["a[1]"], "{expression}");
    }
    for kind in ["network_token", "apple_pay", "google_pay"] {
        let response = client
            .post("/detokenize", json!(format!("{{{{ {kind}: {id} }}}}")))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{kind}");
        let detail = format!("Failed to detokenize some tokens: {id}");
        assert_eq!(response.body["detail"], detail, "{kind}");
    }
    // Properties of a token are accessible through filters only; these are other ids.
    for other in [
        format!("{id}.data"),
        format!("{id}[0]"),
        format!("\"{id}\""),
        format!("tokens: {id}"),
    ] {
        let response = client
            .post("/detokenize", json!(format!("{{{{ {other} }}}}")))
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{other}");
        let detail = format!("Failed to detokenize some tokens: {other}");
        assert_eq!(response.body["detail"], detail, "{other}");
    }
}

/// Covers 12.8.
#[tokio::test]
async fn expression_errors_name_their_path() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": {"a": [1, 2]}})).await;

    let cases = [
        (json!("{{ }}"), "body"),
        (json!("{{ token: }}"), "body"),
        (
            json!({"a": {"b": format!("{{{{ {id} | '$.data' }}}}")}}),
            "a.b",
        ),
        (
            json!([1, format!("{{{{ {id} | no_such_filter }}}}")]),
            "[1]",
        ),
        (json!([[format!("{{{{ {id} | json }}}}")]]), "[0][0]"),
        (
            json!({"a": format!("{{{{ {id} | hmac: 'sha-256', 'k' }}}}")}),
            "a",
        ),
        (json!(format!("{{{{ {id} | json: '$.a[*]' }}}}")), "body"),
        (
            json!({"a": [1, {"b": format!("{{{{ {id} | to_number }}}}")}]}),
            "a[1].b",
        ),
        (json!([format!("<{{{{ {id} | to_string }}}}>")]), "[0]"),
    ];
    for (document, place) in cases {
        let response = client.post("/detokenize", document.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(response.refused(), [place], "{document}");
    }
}

#[tokio::test]
async fn detokenize_rejects_invalid_json_and_other_media_types() {
    let (_vault, _, client) = start().await;

    for document in ["", "{", "[1,]"] {
        let response = client
            .post_text("/detokenize", document, "application/json")
            .await;
        assert_eq!(response.refused(), ["body"], "{document}");
    }
    let response = client.post_text("/detokenize", "\"x\"", "text/plain").await;
    assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}
