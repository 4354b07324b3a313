//! Validation of patches and of the merged token.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{grants, rule};
use http::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use super::row_version;
use crate::tokens::{create, send_patch, setup};

/// Covers 5.1.
#[tokio::test]
async fn updates_require_the_merge_patch_content_type() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;
    let send = async |path: &str, media: Option<&str>, body: &'static str| {
        let request = client.request(Method::PATCH, path).body(body);
        let request = match media {
            Some(media) => request.header("content-type", media),
            None => request,
        };
        client.send(request).await
    };

    let rejected = [
        None,
        Some(""),
        Some("application/json"),
        Some("text/json"),
        Some("application/json-patch+json"),
        Some("application/merge-patch"),
        Some("application/merge-patch+xml"),
        Some("application/merge-patch+json+json"),
        Some("application/x-merge-patch+json"),
        Some("merge-patch+json"),
        Some("text/plain; application/merge-patch+json"),
        Some("application/json, application/merge-patch+json"),
        Some("multipart/form-data; boundary=x"),
    ];
    for media in rejected {
        let response = send(&path, media, r#"{"data":{"a":2}}"#).await;
        assert_eq!(
            response.status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{media:?}"
        );
        assert_eq!(
            response.body["title"], "Unsupported Media Type",
            "{media:?}"
        );
    }
    // The content type is checked before the body and the token.
    for (path, body) in [(path.as_str(), "{"), ("/tokens/nowhere", "{}")] {
        let response = send(path, Some("application/json"), body).await;
        assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    assert_eq!(row_version(&vault, &path).await, 1);

    let accepted = [
        "application/merge-patch+json",
        "application/merge-patch+json; charset=utf-8",
        "application/merge-patch+json;charset=UTF-8;x=\"y\"",
        "application/merge-patch+json ; charset=utf-8",
        "Application/Merge-Patch+JSON",
        "APPLICATION/MERGE-PATCH+JSON; CHARSET=UTF-8",
    ];
    for (count, media) in (2..).zip(accepted) {
        let response = send(&path, Some(media), r#"{"data":{"a":2}}"#).await;
        assert_eq!(response.status, StatusCode::OK, "{media}");
        assert_eq!(row_version(&vault, &path).await, count, "{media}");
    }
}

/// Covers 5.3.
#[tokio::test]
async fn patches_are_validated_by_attribute() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let cases = [
        ("", "body"),
        ("{", "body"),
        ("[]", "body"),
        ("null", "body"),
        ("\"x\"", "body"),
        (r#"{"data":1,"data":2}"#, "body"),
        (r#"{"metadata":"x"}"#, "metadata"),
        (r#"{"metadata":[]}"#, "metadata"),
        (r#"{"metadata":{"k":1}}"#, "metadata.k"),
        (r#"{"containers":"/a/"}"#, "containers"),
        (r#"{"containers":[]}"#, "containers"),
        (r#"{"containers":["/a/","/b/"]}"#, "containers"),
        (r#"{"containers":["a"]}"#, "containers[0]"),
        (r#"{"containers":[null]}"#, "containers[0]"),
        (r#"{"search_indexes":"{{ data }}"}"#, "search_indexes"),
        (
            r#"{"search_indexes":["{{ data }}","{{ data | x }}"]}"#,
            "search_indexes[1]",
        ),
        (r#"{"fingerprint_expression":7}"#, "fingerprint_expression"),
        (
            r#"{"fingerprint_expression":"{{ data | x }}"}"#,
            "fingerprint_expression",
        ),
        (
            r#"{"fingerprint_expression":"{{ data.nothing }}"}"#,
            "fingerprint_expression",
        ),
        (r#"{"deduplicate_token":"true"}"#, "deduplicate_token"),
        (r#"{"expires_at":7}"#, "expires_at"),
        (r#"{"expires_at":"soon"}"#, "expires_at"),
        (r#"{"expires_at":"2020-01-01"}"#, "expires_at"),
        (r#"{"mask":"{{ data | x }}"}"#, "mask"),
        (r#"{"mask":{"a":["{{ data | x }}"]}}"#, "mask.a[0]"),
    ];
    for (patch, rejected) in cases {
        let response = client.patch_text(&path, patch).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{patch}");
        assert_eq!(response.refused(), [rejected], "{patch}");
    }
    // All invalid fields are reported at once.
    let patch = json!({"data": null, "containers": [], "expires_at": "soon", "metadata": {"k": 1}});
    for path in [path.as_str(), "/tokens/nowhere"] {
        let rejected = client.patch(path, patch.clone()).await;
        assert_eq!(
            rejected.refused(),
            ["containers", "data", "expires_at", "metadata.k"]
        );
    }
    assert_eq!(row_version(&vault, &path).await, 1);
}

/// Covers 5.3.
#[tokio::test]
async fn patches_are_validated_before_the_token_is_read() {
    use Permission::TokenUpdate;
    let (vault, tenant, writer) = setup().await;
    let mut elsewhere = grants(&[]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenUpdate])];
    let caller = vault.client(&tenant, elsewhere).await;
    let forbidden = create(&writer, json!({"type": "token", "data": 1})).await;

    let cases = [
        (json!({"data": null}), "data"),
        (json!({"mask": "{{ data | x }}"}), "mask"),
        (json!({"metadata": {"k": 1}}), "metadata.k"),
        (json!({"containers": []}), "containers"),
        (
            json!({"search_indexes": ["{{ data | x }}"]}),
            "search_indexes[0]",
        ),
        (
            json!({"fingerprint_expression": "{{ data | x }}"}),
            "fingerprint_expression",
        ),
        (json!({"expires_at": "soon"}), "expires_at"),
    ];
    for (patch, rejected) in cases {
        for path in ["/tokens/nowhere", &forbidden] {
            let response = caller.patch(path, patch.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{path} {patch}");
            assert_eq!(response.refused(), [rejected], "{path} {patch}");
        }
    }
}

/// Covers 5.11.
#[tokio::test]
async fn read_only_and_unknown_attributes_are_ignored() {
    let (_vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": "x"})).await;
    let before = client.get(&path).await;
    let patch = json!({
        "id": Uuid::nil(),
        "type": "card",
        "tenant_id": Uuid::nil(),
        "fingerprint": "x",
        "created_by": Uuid::nil(),
        "created_at": "2020-01-01",
        "modified_by": Uuid::nil(),
        "privacy": {"impact_level": "low"},
        "encrypted": "e30",
        "_extras": {"deduplicated": true},
        "nonsense": [1],
    });

    let changed = send_patch(&client, &path, patch).await;
    let mut after = client.get(&path).await;

    assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
    let modified_by = after.body["modified_by"].take();
    assert_ne!(modified_by, json!(Uuid::nil()));
    for (name, value) in before.body.as_object().unwrap() {
        assert_eq!(&after.body[name], value, "{name}");
    }
}

/// Covers 5.13.
#[tokio::test]
async fn merged_data_is_validated_by_type() {
    let (vault, _, client) = setup().await;
    let card =
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030});
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});

    #[rustfmt::skip]
    let cases = [
        ("card", &card, json!({"number": "4242424242424241"}), "data.number"),
        ("card", &card, json!({"number": null}), "data.number"),
        ("card", &card, json!({"expiration_month": 13}), "data.expiration_month"),
        ("card", &card, json!({"cvc": "12"}), "data.cvc"),
        ("card", &card, json!("4242424242424242"), "data"),
        ("bank", &bank, json!({"routing_number": "021000022"}), "data.routing_number"),
        ("bank", &bank, json!({"account_number": null}), "data.account_number"),
        ("card_number", &json!("4242424242424242"), json!("4242424242424241"), "data"),
        ("card_number", &json!("4242424242424242"), json!({"number": "4242424242424242"}), "data"),
        ("us_bank_routing_number", &json!("021000021"), json!("021000022"), "data"),
        ("us_bank_account_number", &json!("00001"), json!("1"), "data"),
        ("social_security_number", &json!("078-05-1120"), json!("078-05-112"), "data"),
        ("employer_id_number", &json!("12-3456789"), json!(123456789), "data"),
    ];
    for (kind, data, patch, rejected) in cases {
        let path = create(&client, json!({"type": kind, "data": data})).await;

        let response = client
            .patch(&path, json!({"data": patch, "metadata": {"k": "v"}}))
            .await;

        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{kind} {patch}");
        assert_eq!(response.refused(), [rejected], "{kind} {patch}");
        assert_eq!(row_version(&vault, &path).await, 1);
        let read = client.get(&path).await;
        assert_eq!(&read.body["data"], data);
        assert_eq!(read.body.get("metadata"), None);
    }
}

/// Covers 5.13, 5.14.
#[tokio::test]
async fn merged_data_must_satisfy_fingerprint_and_index_expressions() {
    let (_vault, _, client) = setup().await;
    let new = json!({
        "type": "token",
        "data": {"a": "x"},
        "search_indexes": ["{{ data.a }}"],
        "fingerprint_expression": "{{ data.a }}",
    });
    let path = create(&client, new).await;
    let rejected = client.patch(&path, json!({"data": {"a": null}})).await;
    assert_eq!(
        rejected.refused(),
        ["fingerprint_expression", "search_indexes[0]"]
    );
    assert_eq!(client.get(&path).await.body["data"], json!({"a": "x"}));
}

/// Covers 5.13.
#[tokio::test]
async fn merged_data_has_the_same_size_limit_as_new_data() {
    let (vault, _, client) = setup().await;
    let half = 512 * 1024;
    let path = create(
        &client,
        json!({"type": "token", "data": {"a": "x".repeat(half)}}),
    )
    .await;
    // {"a":"…","b":"…"}
    let remaining = 1024 * 1024 - half - 15;

    let rejected = client
        .patch(&path, json!({"data": {"b": "x".repeat(remaining + 1)}}))
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.refused(), ["data"]);
    assert_eq!(row_version(&vault, &path).await, 1);

    let accepted = client
        .patch(&path, json!({"data": {"b": "x".repeat(remaining)}}))
        .await;
    assert_eq!(accepted.status, StatusCode::OK);
    assert_eq!(
        client.get(&path).await.body["data"].to_string().len(),
        1024 * 1024
    );
}
