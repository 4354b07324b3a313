//! Token intents: short-lived data that becomes a token or expires.

mod convert;
mod create;
mod detokenize;
mod expiry;

use std::time::Duration;

use cloakroom::access::{Grants, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use serde_json::{Value, json};

const INTENTS: [Permission; 3] = [
    Permission::TokenIntentCreate,
    Permission::TokenIntentRead,
    Permission::TokenIntentDelete,
];

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

/// Every permission on intents and tokens.
fn all() -> Grants {
    Grants {
        permissions: INTENTS.into_iter().collect(),
        ..everything(Transform::Reveal)
    }
}

async fn client(vault: &TestVault, tenant: &Tenant) -> Client {
    vault.client(tenant, all()).await
}

async fn rows(vault: &TestVault, table: &str) -> i64 {
    let database = vault.database.connect().await;
    let sql = format!("select count(*) from {table}");
    database.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Waits until the intent has expired by the clock of the database.
async fn until_expired(database: &tokio_postgres::Client, created: &TestResponse) {
    let expires_at = created.body["expires_at"].as_str().unwrap();
    let expires_at: jiff::Timestamp = expires_at.parse().unwrap();
    let is_past = async || -> bool {
        let sql = "select now() >= $1";
        let row = database.query_one(sql, &[&expires_at]).await;
        row.unwrap().get(0)
    };
    while !is_past().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
