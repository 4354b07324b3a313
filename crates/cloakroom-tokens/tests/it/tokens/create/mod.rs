//! Creating tokens: required permissions, order of validation, and the response.

mod attributes;
mod expressions;
mod fingerprints;
mod permissions;
mod response;

use cloakroom_testkit::{Client, TestResponse, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

/// One valid and one invalid value for each token type.
fn one_of_each_type() -> [(&'static str, Value, Value); 9] {
    let bank = |routing: &str| json!({"routing_number": routing, "account_number": "00001"});
    [
        ("token", json!({"any": ["thing"]}), json!(null)),
        (
            "card",
            json!({"number": "4242424242424242"}),
            json!({"number": "4242424242424241"}),
        ),
        (
            "card_number",
            json!("4242424242424242"),
            json!(4_242_424_242_424_242_u64),
        ),
        (
            "network_token",
            json!({"number": "424242424242"}),
            json!({"number": "42424242424"}),
        ),
        ("bank", bank("021000021"), bank("021000022")),
        ("us_bank_account_number", json!("00001"), json!("01")),
        (
            "us_bank_routing_number",
            json!("021000021"),
            json!("021000022"),
        ),
        (
            "social_security_number",
            json!("078-05-1120"),
            json!("078-05-112"),
        ),
        (
            "employer_id_number",
            json!("12-3456789"),
            json!("12 3456789"),
        ),
    ]
}

fn text<'a>(response: &'a TestResponse, name: &str) -> &'a str {
    response.body[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {}", response.body))
}

async fn count(vault: &TestVault, table: &str) -> i64 {
    let sql = format!("select count(*) from {table}");
    vault
        .database
        .connect()
        .await
        .query_one(&sql, &[])
        .await
        .unwrap()
        .get(0)
}

async fn create(client: &Client, new: Value) -> TestResponse {
    let response = client.post("/tokens", new).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    response
}
