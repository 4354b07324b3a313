//! Tokens: reading, validation, ids, updates and deletion.

mod aliases;
mod create;
mod delete;
mod ids;
mod read;
mod update;
mod validation;

use std::collections::BTreeSet;

use cloakroom::access::{Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

fn card() -> Value {
    json!({
        "type": "card",
        "data": {
            "number": "4242424242424242",
            "expiration_month": 12,
            "expiration_year": 2030,
            "cvc": "123",
        },
    })
}

async fn create_with_id(client: &Client, id: &str, data: Value) -> TestResponse {
    client
        .post("/tokens", json!({"id": id, "type": "token", "data": data}))
        .await
}

/// A vault, a tenant, and a client with all token permissions that sees the data.
async fn setup() -> (TestVault, Tenant, Client) {
    let vault = TestVault::start_with_long_timeouts().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    (vault, tenant, client)
}

/// Creates a token and returns its path.
async fn create(client: &Client, new: Value) -> String {
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    format!("/tokens/{}", created.id())
}

/// Sends a patch that must be accepted.
async fn send_patch(client: &Client, path: &str, patch: Value) -> TestResponse {
    let response = client.patch(path, patch.clone()).await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "{patch}: {}",
        response.body
    );
    response
}

/// The ids of the tokens that a search returns.
async fn search_ids(client: &Client, query: &str) -> BTreeSet<String> {
    let response = client
        .post("/v2/tokens/search", json!({ "query": query }))
        .await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "{query}: {}",
        response.body
    );
    let tokens = response.body["data"].as_array().unwrap();
    let ids = tokens.iter().map(|token| token["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}
