//! Searching tokens in both API versions.

mod indexes;
mod pages;
mod queries;
mod visibility;

use cloakroom_testkit::{Client, NamedTokens, TestResponse};
use serde_json::json;

const V2: &str = "/v2/tokens/search";
const V1: &str = "/tokens/search";

async fn search(client: &Client, path: &str, query: &str) -> TestResponse {
    client
        .post(path, json!({"query": query, "size": 100}))
        .await
}

/// Tokens that differ in every attribute that a query can name.
async fn create_samples(client: Client) -> NamedTokens {
    let mut tokens = NamedTokens::new(client);
    let new = [
        (
            "text",
            json!({"containers": ["/a/"], "data": "Some: \"Text\"", "search_indexes": ["{{ data }}"],
                "metadata": {"Key": "Value", "with space": "a b"}}),
        ),
        (
            "object",
            json!({"containers": ["/a/b/"],
                "data": {"number": 42, "flag": true, "half": 0.5, "name": "Ann", "none": ""},
                "search_indexes": ["{{ data.number }}", "{{ data.flag }}", "{{ data.half }}",
                    "{{ data.name }}"],
                "metadata": {"key": "value", "n": "42"}}),
        ),
        (
            "card",
            json!({"type": "card", "containers": ["/c/"],
                "data": {"number": "4242424242424242", "expiration_month": 4,
                    "expiration_year": 2031},
                "search_indexes": ["{{ data.expiration_month }}", "{{ data.number | last4 }}"]}),
        ),
        (
            "plain",
            json!({"containers": ["/"], "data": "Some: \"Text\"", "search_indexes": []}),
        ),
    ];
    for (name, new) in new {
        tokens.create(name, new).await;
    }
    tokens
}
