//! Search queries and request bodies.

use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::{V1, V2, create_samples, search};

/// Covers 10.4, 10.6, 10.9, 10.11, 10.12, 10.14, 10.17, 10.18, 10.21.
#[tokio::test]
async fn queries_match_exactly() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let fingerprint = tokens.bodies["card"]["fingerprint"].as_str().unwrap();
    let everything = "card, object, text, plain";

    let cases = [
        ("", everything),
        ("   ", everything),
        ("container:\"/\"", everything),
        ("container:/a/", "object, text"),
        ("container:\"/A/\"", "object, text"),
        ("container:\"/a/b/\"", "object"),
        ("container:\"/nothing/\"", ""),
        ("type:token", "object, text, plain"),
        ("type:card", "card"),
        ("type:\"bank\"", ""),
        (&format!("fingerprint:{fingerprint}"), "card"),
        (
            &format!("fingerprint:{fingerprint} AND container:\"/c/\""),
            "card",
        ),
        (&format!("container:/a/ AND fingerprint:{fingerprint}"), ""),
        ("metadata.Key:Value", "text"),
        ("metadata.key:value", "object"),
        ("metadata.key:Value", ""),
        ("metadata.with\\ space:\"a b\"", "text"),
        ("metadata.with\\ space:a\\ b", "text"),
        ("metadata.n:42", "object"),
        ("data:Ann", "object"),
        ("data:ann", ""),
        ("data:\"Ann\"", "object"),
        ("data:\"Some: \\\"Text\\\"\"", "text"),
        ("data:Some:\\ \\\"Text\\\"", "text"),
        ("data:Some", ""),
        ("type:token AND container:\"/a/\"", "object, text"),
        ("container:\"/a/\" AND type:token", "object, text"),
        ("  container:\"/a/\"   AND   data:Ann  ", "object"),
        ("container:\"/c/\" AND data:Ann", ""),
        ("metadata.Key:Value AND container:/a/b/", ""),
    ];
    for (query, expected) in cases {
        let found = search(&tokens.client, V2, query).await;
        assert_eq!(found.status, StatusCode::OK, "{query}: {}", found.body);
        assert_eq!(tokens.names(&found).join(", "), expected, "{query}");
    }
}

/// Covers 10.5, 10.7, 10.10, 10.15, 10.17.
#[tokio::test]
async fn v1_queries_match_exactly() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let everything = "plain, card, object, text";

    let cases = [
        ("", everything),
        (&format!("id:{}", tokens.id("card")), "card"),
        (&format!("id:\"{}\"", tokens.id("card")), "card"),
        ("id:no-such-token", ""),
        ("data:Ann", "object"),
        ("data:ann", ""),
        ("data:42", "object"),
        // Metadata keys and values are case-insensitive.
        ("metadata.key:value", "object, text"),
        ("metadata.KEY:\"VALUE\"", "object, text"),
        ("metadata.key:value AND metadata.N:42", "object"),
        (
            "metadata.n:42 AND metadata.key:value AND metadata.with\\ space:\"A B\"",
            "",
        ),
        (
            "metadata.key:value AND metadata.with\\ space:\"A B\"",
            "text",
        ),
    ];
    for (query, expected) in cases {
        let found = search(&tokens.client, V1, query).await;
        assert_eq!(found.status, StatusCode::OK, "{query}: {}", found.body);
        assert_eq!(tokens.names(&found).join(", "), expected, "{query}");
        assert_eq!(
            found.body["pagination"]["total_items"],
            found.items().len(),
            "{query}"
        );
    }
}

/// Covers 10.3, 10.4, 10.5, 10.8, 10.19, 10.20.
#[tokio::test]
async fn invalid_queries_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("data:{}", "a".repeat(196));

    let both = [
        "data:a OR data:b",
        "NOT data:a",
        "-data:a",
        "!data:a",
        "(data:a)",
        "data:[1 TO 2]",
        "data:{1 TO 2}",
        "data:a*",
        "data:a?",
        "data:\"a",
        "data:",
        "data",
        "a",
        "color:red",
        "Data:a",
        "metadata:a",
        "metadata.:a",
        "metadata.k:a and metadata.l:b",
        "data:a AND",
        "AND data:a",
        "data:a AND data:b",
        "data:a b",
        "metadata.k:a AND metadata.k:b",
        "data:a AND metadata.k:b",
        &long,
    ];
    let v2_only = [
        "id:abc",
        "type:nothing",
        "type:Card",
        "container:pci",
        "fingerprint:a-b",
        "container:\"/a/\" AND container:\"/b/\"",
        "type:card AND fingerprint:a",
        "type:card AND metadata.k:v AND container:\"/a/\"",
        "metadata.k:v AND metadata.l:v",
    ];
    let v1_only = [
        "container:\"/a/\"",
        "type:card",
        "fingerprint:a",
        "id:abc AND id:abd",
        "id:abc AND metadata.k:v",
        "metadata.K:a AND metadata.k:b",
    ];
    let cases = both.iter().flat_map(|query| [(V2, query), (V1, query)]);
    let cases = cases.chain(v2_only.iter().map(|query| (V2, query)));
    for (path, query) in cases.chain(v1_only.iter().map(|query| (V1, query))) {
        let rejected = search(&client, path, query).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{path} {query}");
        assert_eq!(rejected.refused(), ["query"], "{path} {query}");
    }
    let longest = search(&client, V2, &long[..200]).await;
    assert_eq!(longest.status, StatusCode::OK);
}

/// Covers 10.1, 10.2, 10.17.
#[tokio::test]
async fn request_bodies_are_validated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    let cases = [
        (V2, json!({}), Ok(1)),
        (
            V2,
            json!({"query": null, "start": null, "size": null}),
            Ok(1),
        ),
        (V2, json!({"query": "", "start": "", "color": "red"}), Ok(1)),
        (V2, json!({"size": 0}), Ok(0)),
        (V2, json!({"size": 101}), Err("size")),
        (V2, json!({"size": -1, "query": "x"}), Err("query size")),
        (V2, json!({"start": "x"}), Err("start")),
        (V2, json!({"start": "a".repeat(501)}), Err("start")),
        (V2, json!({"query": 1}), Err("query")),
        (V1, json!({}), Ok(1)),
        (
            V1,
            json!({"query": null, "page": null, "size": null}),
            Ok(1),
        ),
        (V1, json!({"page": 2, "size": 1}), Ok(0)),
        (V1, json!({"size": 0}), Ok(0)),
        (V1, json!({"page": 0}), Err("page")),
        (
            V1,
            json!({"page": 2_147_483_648_u32, "size": 101}),
            Err("page size"),
        ),
    ];
    for (path, body, expected) in cases {
        let found = client.post(path, body.clone()).await;
        match expected {
            Ok(count) => assert_eq!(found.items().len(), count, "{path} {body}"),
            Err(invalid) => assert_eq!(found.refused().join(" "), invalid, "{path} {body}"),
        }
    }
    for path in [V2, V1] {
        let text = client.post_text(path, "{}", "text/plain").await;
        assert_eq!(text.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let broken = client.post_text(path, "{", "application/json").await;
        assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    }
}
