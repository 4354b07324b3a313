//! Permissions for creating tokens and for operations on them.

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{count, create};

/// A client that holds one permission in `/mine/`.
async fn limited_client(vault: &TestVault, tenant: &Tenant, permission: Permission) -> Client {
    let mut granted = grants(&[]);
    granted.rules = vec![rule(1, "/mine/", Transform::Reveal, &[permission])];
    vault.client(tenant, granted).await
}

fn token_in(container: &str) -> Value {
    json!({"type": "token", "data": "x", "containers": [container]})
}

fn assert_statuses<const N: usize>(cases: [(&str, TestResponse, u16); N]) {
    for (case, response, status) in cases {
        assert_eq!(
            response.status.as_u16(),
            status,
            "{case}: {}",
            response.body
        );
    }
}

/// Covers 1.1, 1.9.
#[tokio::test]
async fn creating_requires_the_permission_in_the_target_container() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = limited_client(&vault, &tenant, Permission::TokenCreate).await;

    let here = json!([token_in("/mine/")]);
    let both = json!([token_in("/mine/"), token_in("/theirs/")]);
    assert_statuses([
        (
            "here",
            client.post("/tokens", token_in("/mine/")).await,
            201,
        ),
        (
            "below",
            client.post("/tokens", token_in("/mine/below/")).await,
            201,
        ),
        (
            "there",
            client.post("/tokens", token_in("/theirs/")).await,
            403,
        ),
        ("tokenize here", client.post("/tokenize", here).await, 200),
        (
            "tokenize here and there",
            client.post("/tokenize", both).await,
            403,
        ),
    ]);
    assert_eq!(count(&vault, "token").await, 3);
}

/// Covers 1.4, 1.5, 1.6, 1.10.
#[tokio::test]
async fn other_operations_require_the_permission_in_the_container_of_the_token() {
    use Permission::{TokenDelete, TokenRead, TokenUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let here = create(&owner, token_in("/mine/")).await.id();
    let there = create(&owner, token_in("/theirs/")).await.id();
    let (own, foreign) = (format!("/tokens/{here}"), format!("/tokens/{there}"));

    let reader = limited_client(&vault, &tenant, TokenRead).await;
    let (first, second) = (format!("{{{{ {here} }}}}"), format!("{{{{ {there} }}}}"));
    let both = json!([first, second]);
    assert_statuses([
        ("read here", reader.get(&own).await, 200),
        ("read there", reader.get(&foreign).await, 403),
        (
            "detokenize here",
            reader.post("/detokenize", json!(first)).await,
            200,
        ),
        (
            "detokenize here and there",
            reader.post("/detokenize", both).await,
            403,
        ),
    ]);
    let updater = limited_client(&vault, &tenant, TokenUpdate).await;
    let new = json!({"data": "z"});
    let move_out = json!({"containers": ["/theirs/"]});
    let move_in = json!({"containers": ["/mine/"]});
    assert_statuses([
        ("update here", updater.patch(&own, new.clone()).await, 200),
        ("update there", updater.patch(&foreign, new).await, 403),
        ("move out", updater.patch(&own, move_out).await, 403),
        ("move in", updater.patch(&foreign, move_in).await, 403),
    ]);
    let deleter = limited_client(&vault, &tenant, TokenDelete).await;
    assert_statuses([
        ("delete there", deleter.delete(&foreign).await, 403),
        ("delete here", deleter.delete(&own).await, 204),
    ]);
    assert_eq!(owner.get(&foreign).await.body["data"], "x");
}

/// Covers 3.13, 3.14.
#[tokio::test]
async fn validation_errors_precede_permission_errors() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/mine/",
        Transform::Mask,
        &[Permission::TokenCreate],
    )];
    let client = vault.client(&tenant, granted).await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    create(&owner, json!({"id": "taken", "type": "token", "data": 1})).await;

    let invalid = json!({
        "id": "a/b",
        "type": "token",
        "data": 1,
        "mask": "{{ data | nothing }}",
        "search_indexes": ["{{ data }}", "{{"],
        "fingerprint_expression": "{{ data | nothing }}",
        "expires_at": "soon",
        "containers": ["/theirs/"],
    });
    let invalid = client.post("/tokens", invalid).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    let expected = [
        "expires_at",
        "fingerprint_expression",
        "id",
        "mask",
        "search_indexes[1]",
    ];
    let mut errors = invalid.refused();
    errors.sort_unstable();
    assert_eq!(errors, expected);

    // None of these is evaluated in a container where the caller may not create tokens.
    let forbidden = [
        json!({"id": "taken"}),
        json!({"search_indexes": ["{{ data.missing }}"]}),
        json!({"fingerprint_expression": "{{ data.missing }}"}),
        json!({"id": "{{ data.missing }}"}),
        json!({"expires_at": "2020-01-01"}),
        json!({"deduplicate_token": true}),
    ];
    for mut new in forbidden {
        new["type"] = json!("token");
        new["data"] = json!(1);
        new["containers"] = json!(["/theirs/"]);
        let response = client.post("/tokens", new.clone()).await;
        assert_eq!(
            response.status,
            StatusCode::FORBIDDEN,
            "{new}: {}",
            response.body
        );
    }
    assert_eq!(count(&vault, "token").await, 1);
}

/// Covers 1.1, 3.21.
#[tokio::test]
async fn a_public_application_creates_tokens_and_sees_masked_data() {
    let vault = TestVault::start().await;
    let tenant: Tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Public,
            grants(&[Permission::TokenCreate]),
        )
        .await;
    let client = vault.client_with(Some(&holder.key));

    let created = create(
        &client,
        json!({"type": "card_number", "data": "4242424242424242"}),
    )
    .await;

    assert_eq!(created.body["data"], "XXXXXXXXXXXX4242");
    assert_eq!(created.body["created_by"], holder.application.to_string());
    let read = client.get(&format!("/tokens/{}", created.id())).await;
    assert_eq!(read.status, StatusCode::FORBIDDEN);
}
