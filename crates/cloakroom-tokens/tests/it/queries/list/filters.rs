//! Filters of token lists.

use cloakroom_testkit::{NamedTokens, TestVault};
use http::StatusCode;
use serde_json::json;

use super::create_samples;

/// Covers 4.4, 4.6, 4.7, 4.8, 4.10, 4.13.
#[tokio::test]
async fn filters_match_exactly() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let fingerprint = |name: &str| tokens.bodies[name]["fingerprint"].as_str().unwrap();
    let (twin, card, number) = (
        fingerprint("twin 1"),
        fingerprint("card"),
        fingerprint("number"),
    );
    let everything = "twin 2, number, ab, twin 1, card, a/b, a, a-b, root";

    let cases = [
        ("", everything),
        ("container=/", everything),
        ("color=red", everything),
        ("container=/a/", "twin 1, card, a/b, a"),
        ("container=%2FA%2F", "twin 1, card, a/b, a"),
        ("container=/a/b/", "a/b"),
        ("container=/nothing/", ""),
        ("type=token", "twin 2, ab, twin 1, a/b, a, a-b, root"),
        ("type=card", "card"),
        ("type=bank", ""),
        ("type=token&container=/a/", "twin 1, a/b, a"),
        ("container=/c/&type=card", ""),
        (&format!("fingerprint={twin}"), "twin 2, twin 1"),
        (&format!("fingerprint={twin}&container=/t/"), "twin 2"),
        // The type is part of the fingerprint: equal numbers of different types differ.
        (&format!("fingerprint={card}"), "card"),
        (&format!("fingerprint={number}"), "number"),
        (&format!("fingerprint={}", twin.to_lowercase()), ""),
        ("fingerprint=AKCU1", ""),
        ("metadata.Key=Value", "ab, a"),
        ("metadata.Key=Value&container=/a/", "a"),
        ("metadata[Key]=Value", "ab, a"),
        ("metadata%5BKey%5D=Value", "ab, a"),
        ("metadata=%7B%22Key%22%3A%22Value%22%7D", "ab, a"),
        // Keys and values are case-sensitive.
        ("metadata.key=value", "a/b"),
        ("metadata.key=Value", ""),
        ("metadata.Key=value", ""),
        ("metadata.n=1", "a/b"),
        ("metadata.n=", ""),
    ];
    for (query, expected) in cases {
        let listed = tokens.client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.status, StatusCode::OK, "{query}: {}", listed.body);
        assert_eq!(tokens.names(&listed).join(", "), expected, "{query}");
    }
}

/// Covers 4.6.
#[tokio::test]
async fn fingerprints_are_compared_in_full() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let fingerprint = tokens.bodies["twin 1"]["fingerprint"].as_str().unwrap();
    let mut bytes = bs58::decode(fingerprint).into_vec().unwrap();
    bytes[31] ^= 1;
    let other = bs58::encode(bytes).into_string();

    let listed = tokens
        .client
        .get(&format!("/v2/tokens?fingerprint={other}"))
        .await;

    assert_eq!(tokens.names(&listed), Vec::<&str>::new());
}

/// Covers 4.9, 4.10, 4.11, 4.12.
#[tokio::test]
async fn invalid_filters_and_combinations_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("start={}", "a".repeat(501));

    let cases = [
        ("container=/a/&container=/a/", "container"),
        ("type=card&type=card", "type"),
        ("fingerprint=a&fingerprint=a", "fingerprint"),
        ("size=1&size=1", "size"),
        ("start=a&start=a", "start"),
        ("metadata.a=1&metadata.a=1", "metadata"),
        ("metadata.a=1&metadata[b]=2", "metadata"),
        (
            "metadata=%7B%22a%22%3A%221%22%2C%22b%22%3A%222%22%7D",
            "metadata",
        ),
        ("type=card&fingerprint=a", "fingerprint type"),
        ("type=card&metadata.a=1", "metadata type"),
        ("fingerprint=a&metadata[a]=1", "fingerprint metadata"),
        ("id=c06d0789-0a38-40be-b7cc-c28a718f76f1", "id"),
        ("container=pci", "container"),
        ("container=", "container"),
        ("type=Card", "type"),
        ("type=", "type"),
        ("fingerprint=a-b", "fingerprint"),
        ("metadata=x", "metadata"),
        ("size=101", "size"),
        ("size=-1", "size"),
        ("size=x", "size"),
        ("start=x", "start"),
        (&long, "start"),
        ("container=x&size=x&type=x", "container size type"),
    ];
    for (query, expected) in cases {
        let listed = client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(listed.refused().join(" "), expected, "{query}");
    }
}

/// Covers 4.17, 8.10.
#[tokio::test]
async fn lists_reflect_updates_expiry_and_deletion() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    for name in ["stays", "moves", "expires", "goes"] {
        let new = json!({"containers": ["/b/"], "data": "same", "metadata": {"k": "v"},
            "expires_at": "2040-01-01T00:00:00Z"});
        tokens.create(name, new).await;
    }
    let client = &tokens.client;
    let moved = json!({"containers": ["/a/"], "metadata": {"k": "w"}});
    client
        .patch(&format!("/tokens/{}", tokens.id("moves")), moved)
        .await;
    client
        .delete(&format!("/tokens/{}", tokens.id("goes")))
        .await;
    tokens.expire(&vault, "expires").await;
    let fingerprint = tokens.bodies["stays"]["fingerprint"].as_str().unwrap();

    let cases = [
        ("/v2/tokens?", "stays, moves"),
        ("/v2/tokens?type=token", "stays, moves"),
        ("/v2/tokens?container=/b/", "stays"),
        ("/v2/tokens?container=/a/", "moves"),
        ("/v2/tokens?metadata.k=v", "stays"),
        ("/v2/tokens?metadata.k=w", "moves"),
        (
            &format!("/v2/tokens?fingerprint={fingerprint}"),
            "stays, moves",
        ),
        ("/tokens?", "moves, stays"),
        ("/tokens?metadata.k=V", "stays"),
        ("/tokens?metadata.K=w", "moves"),
        (&format!("/tokens?id={}", tokens.id("expires")), ""),
    ];
    for (path, expected) in cases {
        let listed = client.get(path).await;
        assert_eq!(tokens.names(&listed).join(", "), expected, "{path}");
        if let Some(total) = listed.body["pagination"].get("total_items") {
            assert_eq!(*total, listed.items().len(), "{path}");
        }
    }
}

/// Covers 4.7, 4.20.
#[tokio::test]
async fn metadata_may_contain_any_text() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let metadata = json!({"a": "1", "nul": "\u{0}", "quote\"": "\\\u{1F511}"});
    let created = client
        .post(
            "/tokens",
            json!({"type": "token", "data": 1, "metadata": metadata}),
        )
        .await;

    for query in [
        "/v2/tokens?metadata.a=1",
        "/tokens?metadata.A=1",
        "/v2/tokens?metadata.quote%22=%5C%F0%9F%94%91",
    ] {
        let listed = client.get(query).await;
        assert_eq!(listed.status, StatusCode::OK, "{query}: {}", listed.body);
        assert_eq!(listed.items()[0]["id"], created.body["id"], "{query}");
    }
}
