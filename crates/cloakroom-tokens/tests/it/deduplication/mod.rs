//! Deduplication: which existing token is returned instead of a new one, and what the caller sees of it.

mod behavior;
mod claims;
mod concurrency;
mod lookup;

use cloakroom::access::Tenant;
use cloakroom_testkit::{Client, TestResponse, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

/// A new token with deduplication enabled and the attributes of `more`.
fn deduplicated(data: &Value, more: Value) -> Value {
    let mut new = json!({"type": "token", "data": data, "deduplicate_token": true});
    for (name, value) in more.as_object().unwrap() {
        new[name] = value.clone();
    }
    new
}

async fn create(client: &Client, new: Value) -> TestResponse {
    let response = client.post("/tokens", new).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    response
}

async fn updating_tenant(vault: &TestVault) -> Tenant {
    vault
        .tenant_with(&[("token_deduplication_behavior", "update_existing")])
        .await
}

fn is_duplicate(response: &TestResponse) -> bool {
    response.body["_extras"]["deduplicated"].as_bool().unwrap()
}

async fn counts(vault: &TestVault) -> (i64, i64) {
    let sql = "select (select count(*) from token), (select count(*) from claim)";
    let row = vault
        .database
        .connect()
        .await
        .query_one(sql, &[])
        .await
        .unwrap();
    (row.get(0), row.get(1))
}
