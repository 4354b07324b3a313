//! Which tokens a search returns, and what it shows of them.

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{TestResponse, TestVault, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{V1, V2, create_samples, search};

/// Covers 10.12, 10.13, 10.24.
#[tokio::test]
async fn results_are_transformed_by_the_search_rule() {
    use Permission::{TokenCreate, TokenRead, TokenSearch};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, grants(&[TokenCreate])).await;
    for container in ["/a/", "/a/b/", "/c/", "/d/"] {
        let new = json!({"type": "token", "data": "secret value", "containers": [container],
            "mask": "{{ data | reveal_last: 4 }}", "search_indexes": ["{{ data | last4 }}"]});
        assert_eq!(
            writer.post("/tokens", new).await.status,
            StatusCode::CREATED
        );
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/b/", Transform::Redact, &[TokenSearch]),
        rule(2, "/a/", Transform::Reveal, &[TokenRead]),
        rule(3, "/a/", Transform::Mask, &[TokenSearch]),
        rule(4, "/c/", Transform::Reveal, &[TokenSearch]),
        rule(5, "/d/", Transform::Reveal, &[TokenRead]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let shown = |response: &TestResponse| -> Vec<String> {
        let describe = |item: &Value| {
            let data = item.get("data").map_or("-", |data| data.as_str().unwrap());
            format!("{} {data}", item["containers"][0].as_str().unwrap())
        };
        response.items().iter().map(describe).collect()
    };
    let expected = ["/c/ secret value", "/a/b/ -", "/a/ XXXXXXXXalue"];

    for query in ["", "data:alue", "type:token"] {
        assert_eq!(
            shown(&search(&reader, V2, query).await),
            expected,
            "{query}"
        );
    }
    let v1 = search(&reader, V1, "data:alue").await;
    assert_eq!(shown(&v1), expected);
    assert_eq!(v1.body["pagination"]["total_items"], 3);
    let listed = reader.get("/v2/tokens").await;
    let read = ["/d/ secret value", "/a/b/ secret value", "/a/ secret value"];
    assert_eq!(shown(&listed), read);
    // A permission without a rule: everything, masked.
    let plain = vault.client(&tenant, grants(&[TokenSearch])).await;
    let all = shown(&search(&plain, V2, "data:alue").await);
    assert!(
        all.len() == 4 && all.iter().all(|item| item.ends_with(" XXXXXXXXalue")),
        "{all:?}"
    );

    let cases = [
        ("container:\"/a/\"", StatusCode::OK),
        ("container:\"/a/b/\" AND data:alue", StatusCode::OK),
        ("container:\"/\"", StatusCode::FORBIDDEN),
        ("container:\"/d/\"", StatusCode::FORBIDDEN),
        ("data:alue AND container:\"/d/\"", StatusCode::FORBIDDEN),
    ];
    for (query, status) in cases {
        assert_eq!(search(&reader, V2, query).await.status, status, "{query}");
    }
}

/// Covers 1.7, 1.8, 10.13.
#[tokio::test]
async fn searches_without_search_permission_are_forbidden() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let caller = vault
        .client(
            &tenant,
            grants(&[Permission::TokenCreate, Permission::TokenRead]),
        )
        .await;

    for path in [V2, V1] {
        for body in [
            json!({}),
            json!({"query": "("}),
            json!({"size": 101}),
            json!([]),
        ] {
            let rejected = caller.post(path, body.clone()).await;
            assert_eq!(rejected.status, StatusCode::FORBIDDEN, "{path} {body}");
        }
    }
}

/// Covers 10.13.
#[tokio::test]
async fn searches_exclude_other_tenants() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let other = vault.revealing_client().await;
    let fingerprint = tokens.bodies["card"]["fingerprint"].as_str().unwrap();

    for query in [
        "",
        "data:Ann",
        "metadata.Key:Value",
        &format!("fingerprint:{fingerprint}"),
    ] {
        assert_eq!(search(&other, V2, query).await.items().len(), 0, "{query}");
    }
    for query in [
        "",
        "data:Ann",
        "metadata.key:value",
        &format!("id:{}", tokens.id("card")),
    ] {
        let found = search(&other, V1, query).await;
        assert_eq!(found.body["pagination"]["total_items"], 0, "{query}");
    }
}
