//! Which tokens a list contains, and what it shows of them.

use std::collections::BTreeSet;

use cloakroom::access::{Grants, Permission, Transform};
use cloakroom_testkit::{NamedTokens, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{SECRET, create_samples, list_pages};

/// The mask of the worked example in the API documentation, and its result.
const MASK: &str = "{{ data | reveal_last: 4 }}";
const MASKED: &str = "XXXXXXXXalue";

/// Covers 4.4, 4.5, 4.14.
#[tokio::test]
async fn containers_are_listed_only_with_read_permission() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut tokens = NamedTokens::new(writer);
    for container in ["/a/", "/a/b/", "/ab/", "/c/"] {
        tokens
            .create(container, json!({"containers": [container], "data": 1}))
            .await;
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/", Transform::Mask, &[TokenRead]),
        rule(2, "/c/", Transform::Mask, &[TokenCreate]),
    ];
    let reader = vault.client(&tenant, granted).await;

    let cases = [
        ("", Some("/a/b/, /a/")),
        ("?type=token", Some("/a/b/, /a/")),
        ("?container=/a/", Some("/a/b/, /a/")),
        ("?container=/a/b/", Some("/a/b/")),
        ("?container=/a/nothing/", Some("")),
        ("?container=/", None),
        ("?container=/ab/", None),
        ("?container=/c/", None),
        ("?container=/nothing/", None),
    ];
    for (query, expected) in cases {
        let listed = reader.get(&format!("/v2/tokens{query}")).await;
        match expected {
            Some(names) => assert_eq!(tokens.names(&listed).join(", "), names, "{query}"),
            None => assert_eq!(listed.status, StatusCode::FORBIDDEN, "{query}"),
        }
    }
}

/// Covers 1.2, 1.3, 4.14.
#[tokio::test]
async fn lists_without_read_permission_are_forbidden() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let caller = vault
        .client(
            &tenant,
            grants(&[Permission::TokenCreate, Permission::TokenSearch]),
        )
        .await;

    for path in [
        "/v2/tokens",
        "/v2/tokens?size=x",
        "/v2/tokens?container=/a/",
        "/tokens",
        "/tokens?size=x",
        "/tokens?id=abc",
    ] {
        let rejected = caller.get(path).await;
        assert_eq!(rejected.status, StatusCode::FORBIDDEN, "{path}");
    }
}

fn transforms() -> Grants {
    use Permission::{TokenCreate, TokenRead};
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/", Transform::Mask, &[TokenCreate]),
        rule(2, "/users/government/", Transform::Redact, &[TokenRead]),
        rule(3, "/users/employees/", Transform::Reveal, &[TokenRead]),
        rule(4, "/users/", Transform::Mask, &[TokenRead]),
    ];
    granted
}

/// Covers 4.16.
#[tokio::test]
async fn items_are_transformed_by_the_rule_of_their_container() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, transforms()).await;
    for container in [
        "/users/government/",
        "/users/employees/hq/",
        "/users/",
        "/bounty-hunters/",
    ] {
        let new = json!({"type": "token", "data": SECRET, "mask": MASK,
            "containers": [container], "metadata": {"k": "v"}});
        assert_eq!(
            client.post("/tokens", new).await.status,
            StatusCode::CREATED
        );
    }
    let bare = json!({"type": "token", "data": SECRET, "containers": ["/users/bare/"]});
    client.post("/tokens", bare).await;

    let expected = [
        ("/users/government/", None, true),
        ("/users/employees/hq/", Some(json!(SECRET)), true),
        ("/users/bare/", None, false),
        ("/users/", Some(json!(MASKED)), true),
    ];
    let listed = client.get("/v2/tokens").await;
    let shown: Vec<_> = listed.items().iter().map(visible).collect();
    assert_eq!(shown, expected.clone());
    // The v1 list shows the same, newest first.
    let v1 = client.get("/tokens").await;
    let shown: BTreeSet<String> = v1
        .items()
        .iter()
        .map(|item| format!("{:?}", visible(item)))
        .collect();
    assert_eq!(
        shown,
        expected.iter().map(|item| format!("{item:?}")).collect()
    );
    assert_eq!(v1.body["pagination"]["total_items"], 4);
    // Attributes other than the data are not transformed.
    assert_eq!(listed.items()[0]["metadata"], json!({"k": "v"}));
    assert_eq!(listed.items()[0].get("_extras"), None);
}

/// The container of a token, its visible data, and whether its mask is visible.
fn visible(item: &Value) -> (&str, Option<Value>, bool) {
    let container = item["containers"][0].as_str().unwrap();
    (
        container,
        item.get("data").cloned(),
        item.get("mask").is_some(),
    )
}

/// Covers 4.14, 4.15, 4.16.
#[tokio::test]
async fn disjoint_rules_make_one_list() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, grants(&[TokenCreate])).await;
    let mut tokens = NamedTokens::new(writer);
    let paths = [
        "/z/",
        "/d/x/y/",
        "/d/x/",
        "/d/",
        "/c/",
        "/b/inner/",
        "/b/",
        "/a/",
        "/",
    ];
    for path in paths {
        for n in 0..2 {
            let new = json!({"containers": [path], "data": SECRET, "mask": MASK});
            tokens.create(&format!("{path}{n}"), new).await;
        }
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/b/inner/", Transform::Reveal, &[TokenRead]),
        rule(2, "/d/x/", Transform::Redact, &[TokenRead]),
        rule(3, "/b/", Transform::Mask, &[TokenRead]),
        rule(4, "/z/", Transform::Mask, &[TokenRead]),
        rule(5, "/empty/", Transform::Mask, &[TokenRead]),
        rule(6, "/a/", Transform::Mask, &[TokenCreate]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let expected = [
        "/z/1",
        "/z/0",
        "/d/x/y/1",
        "/d/x/y/0",
        "/d/x/1",
        "/d/x/0",
        "/b/inner/1",
        "/b/inner/0",
        "/b/1",
        "/b/0",
    ];

    for size in [1, 3, 10, 100] {
        let pages = list_pages(&reader, "", size).await;
        let items: Vec<&Value> = pages.iter().flatten().collect();
        let names: Vec<&str> = items.iter().map(|item| tokens.name(item)).collect();
        assert_eq!(names, expected, "{size}");
        for item in items {
            let data = match item["containers"][0].as_str().unwrap() {
                "/d/x/" | "/d/x/y/" => None,
                "/b/inner/" => Some(json!(SECRET)),
                _ => Some(json!(MASKED)),
            };
            assert_eq!(item.get("data"), data.as_ref(), "{item}");
        }
    }
}

/// Covers 4.16.
#[tokio::test]
async fn containers_without_a_rule_are_masked() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[Permission::TokenCreate, Permission::TokenRead]);
    granted.rules = vec![rule(1, "/a/", Transform::Reveal, &[Permission::TokenRead])];
    let client = vault.client(&tenant, granted).await;
    let mut tokens = NamedTokens::new(client);
    for path in ["/a/", "/b/"] {
        let new = json!({"containers": [path], "data": SECRET, "mask": MASK});
        tokens.create(path, new).await;
    }

    let listed = tokens.client.get("/v2/tokens").await;

    let shown: Vec<_> = listed.items().iter().map(visible).collect();
    assert_eq!(
        shown,
        [
            ("/b/", Some(json!(MASKED)), true),
            ("/a/", Some(json!(SECRET)), true)
        ]
    );
}

/// Covers 4.14.
#[tokio::test]
async fn lists_exclude_other_tenants() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;
    let other = vault.revealing_client().await;
    let fingerprint = tokens.bodies["twin 1"]["fingerprint"].as_str().unwrap();

    for query in [
        "".to_owned(),
        "type=token".to_owned(),
        "container=/a/".to_owned(),
        "metadata.Key=Value".to_owned(),
        format!("fingerprint={fingerprint}"),
    ] {
        let listed = other.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.body["data"], json!([]), "{query}");
    }
    let v1 = other.get(&format!("/tokens?id={}", tokens.id("a"))).await;
    assert_eq!(v1.body["pagination"]["total_items"], 0);
}
