//! Token expiry: accepted formats, invisibility of expired tokens, and the sweep.

mod formats;
mod sweep;
mod visibility;

use cloakroom_testkit::{Client, TestResponse, TestVault};
use jiff::Timestamp;
use serde_json::{Value, json};

async fn create(client: &Client, expires_at: Value) -> TestResponse {
    let new = json!({"type": "token", "data": "x", "expires_at": expires_at});
    client.post("/tokens", new).await
}

/// The time of the database, which decides about expiry.
async fn database_time(database: &tokio_postgres::Client) -> Timestamp {
    let sql = "select clock_timestamp()";
    database.query_one(sql, &[]).await.unwrap().get(0)
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
