//! Client encryption keys, and tokens created from encrypted data.

mod decrypt;
mod manage;
mod reject;
mod rotate;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, grants};
use http::StatusCode;
use serde_json::{Value, json};

/// A tenant with one client that manages encryption keys and one that creates tokens and reads them in clear.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    manager: Client,
    client: Client,
}

async fn fixture() -> Fixture {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    Fixture {
        manager: manager(&vault, &tenant).await,
        client: vault.client(&tenant, everything(Transform::Reveal)).await,
        vault,
        tenant,
    }
}

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    use Permission::{KeysCreate, KeysDelete, KeysRead};
    let granted = grants(&[KeysCreate, KeysRead, KeysDelete]);
    let kind = ApplicationKind::Management;
    let holder = vault.holder(tenant, kind, granted).await;
    vault.client_with(Some(&holder.key))
}

impl Fixture {
    async fn create_key(&self) -> Value {
        let created = self.manager.post("/keys", json!({})).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.body
    }

    async fn execute(&self, sql: &str) -> u64 {
        self.vault
            .database
            .connect()
            .await
            .execute(sql, &[])
            .await
            .unwrap()
    }

    async fn count_tokens(&self) -> i64 {
        let database = self.vault.database.connect().await;
        let row = database.query_one("select count(*) from token", &[]).await;
        row.unwrap().get(0)
    }
}

fn path_of(key: &Value) -> String {
    format!("/keys/{}", key["id"].as_str().unwrap())
}

async fn create_encrypted(client: &Client, encrypted: &str) -> TestResponse {
    let new = json!({"type": "token", "encrypted": encrypted});
    client.post("/tokens", new).await
}
