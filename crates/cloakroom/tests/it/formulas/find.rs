//! Reading single connection formulas, and entity tags.

use cloakroom_testkit::TestVault;
use http::{Method, StatusCode};

use super::{PATHS, reader, source};

/// Covers 25.1, 25.4.
#[tokio::test]
async fn every_formula_matches_the_source() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();

    assert_eq!(source.len(), 18);
    for path in PATHS {
        for expected in &source {
            let id = expected["id"].as_str().unwrap();
            let response = client.get(&format!("{path}/{id}")).await;
            assert_eq!(response.status, StatusCode::OK, "{path} {id}");
            // Compared as text, so that the order of members counts.
            assert_eq!(
                response.body.to_string(),
                expected.to_string(),
                "{path} {id}"
            );
        }
        for unknown in [
            "stripe",
            "STRIPE-CARD",
            "mock-card",
            "%20",
            "%FF",
            "stripe-card%2F",
        ] {
            let response = client.get(&format!("{path}/{unknown}")).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{path} {unknown}");
            assert_eq!(response.body["code"], "not_found", "{path} {unknown}");
            assert_eq!(response.header("cache-control"), "no-store");
            assert!(!response.headers.contains_key("etag"));
        }
    }
}

/// Covers 25.7.
#[tokio::test]
async fn matching_etags_return_not_modified() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let stripe = format!("{}/stripe-card", PATHS[0]);
    let some = format!("{}?size=3", PATHS[1]);
    let mut tags = std::collections::BTreeSet::new();

    for path in [PATHS[0], &stripe, &some] {
        let whole = client.get(path).await;
        let tag = whole.header("etag").to_owned();
        let is_strong = tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"');
        assert!(is_strong, "{path}: {tag}");
        assert!(
            tags.insert(tag.clone()),
            "different responses have different tags"
        );
        let cases = [
            (None, false),
            (Some(tag.clone()), true),
            (Some(format!("W/{tag}")), true),
            (Some(format!("\"a\", W/\"b\", {tag}")), true),
            (Some("*".to_owned()), true),
            (Some("\"a\"".to_owned()), false),
            (Some("\"*\"".to_owned()), false),
            (Some(tag.trim_matches('"').to_owned()), false),
            (Some(String::new()), false),
        ];
        for (if_none_match, is_match) in cases {
            for method in [Method::GET, Method::HEAD] {
                let case = format!("{method} {path} {if_none_match:?}");
                let mut request = client.request(method.clone(), path);
                if let Some(if_none_match) = &if_none_match {
                    request = request.header("if-none-match", if_none_match);
                }
                let response = client.send(request).await;
                let (status, body) = match (is_match, &method) {
                    (true, _) => (StatusCode::NOT_MODIFIED, &[][..]),
                    (false, &Method::HEAD) => (StatusCode::OK, &[][..]),
                    (false, _) => (StatusCode::OK, &whole.bytes[..]),
                };
                assert_eq!(
                    (response.status, &response.bytes[..]),
                    (status, body),
                    "{case}"
                );
                assert_eq!(response.header("etag"), tag, "{case}");
                assert_eq!(
                    response.header("cache-control"),
                    "private, no-cache",
                    "{case}"
                );
                assert_eq!(
                    response.headers.contains_key("content-type"),
                    !is_match,
                    "{case}"
                );
            }
        }
    }
    let unknown = format!("{}/unknown-card", PATHS[0]);
    let request = client
        .request(Method::GET, &unknown)
        .header("if-none-match", "*");
    assert_eq!(client.send(request).await.status, StatusCode::NOT_FOUND);
}

/// Covers 25.7.
#[tokio::test]
async fn etags_are_equal_on_all_nodes_and_exposed_to_browsers() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;

    let second = vault.second_node().await;
    let elsewhere = second.client_with(client.key());
    assert_eq!(
        elsewhere.get(PATHS[0]).await.header("etag"),
        client.get(PATHS[0]).await.header("etag")
    );
    let request = client
        .request(Method::GET, PATHS[0])
        .header("origin", "https://shop.example");
    let response = client.send(request).await;
    let exposed = response.header("access-control-expose-headers");
    assert!(exposed.split(',').any(|name| name == "etag"), "{exposed}");
}
