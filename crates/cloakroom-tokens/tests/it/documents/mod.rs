//! Tokenizing and detokenizing JSON documents.

mod detokenize;
mod detokenize_errors;
mod tokenize;
mod tokenize_duplicates;
mod tokenize_errors;

use cloakroom::access::{Tenant, Transform};
use cloakroom_testkit::{Client, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

/// A vault, a tenant, and a client of it with all token permissions and `reveal`.
async fn start() -> (TestVault, Tenant, Client) {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    (vault, tenant, client)
}

/// Tokenizes a document; panics unless it is accepted.
async fn tokenize(client: &Client, document: Value) -> Value {
    let response = client.post("/tokenize", document.clone()).await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "{document}: {}",
        response.body
    );
    response.body
}

/// Detokenizes a document; panics unless it is accepted.
async fn detokenize(client: &Client, document: Value) -> Value {
    let response = client.post("/detokenize", document.clone()).await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "{document}: {}",
        response.body
    );
    response.body
}

/// Creates a token and returns its id.
async fn create(client: &Client, new: Value) -> String {
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    created.id()
}

/// Number of rows of tokens, search terms, claims and security codes.
async fn count_rows(vault: &TestVault) -> i64 {
    let count = "select (select count(*) from token) + (select count(*) from term)
        + (select count(*) from claim) + (select count(*) from security_code)";
    let database = vault.database.connect().await;
    database.query_one(count, &[]).await.unwrap().get(0)
}

fn bank() -> Value {
    json!({"routing_number": "021000021", "account_number": "00001"})
}
