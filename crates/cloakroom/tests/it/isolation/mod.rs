//! Isolation between tenants, and integrity of rows that are altered by SQL.

mod altered_columns;
mod altered_rows;
mod attempt;
mod corrupt_rows;
mod cross_tenant;
mod stale_rows;
mod tenant;

use cloakroom::access::{Grants, Permission, Transform};
use cloakroom_testkit::{Client, TestVault, everything};
use http::StatusCode;
use serde_json::json;

const VICTIM: &str = "/tokens/order%2017";

/// A client with every permission on tokens and those on token intents that these tests need.
async fn intent_client(vault: &TestVault) -> Client {
    let tenant = vault.tenant().await;
    let grants = Grants {
        permissions: [Permission::TokenIntentCreate, Permission::TokenIntentRead]
            .into_iter()
            .collect(),
        ..everything(Transform::Reveal)
    };
    vault.client(&tenant, grants).await
}

/// Creates the victim token, a donor whose data could be substituted, and a token that may become a duplicate of
/// the victim. Returns the fingerprint of the victim.
async fn create_tokens(client: &Client) -> String {
    let token = |id: &str, secret: &str, container: &str| {
        json!({
            "id": id,
            "type": "token",
            "data": {"secret": secret},
            "mask": {"secret": "{{ data.secret | reveal_last: 3 }}"},
            "metadata": {"who": id},
            "search_indexes": ["{{ data.secret }}"],
            "containers": [container],
            "deduplicate_token": true,
        })
    };
    for new in [
        token("order 17", "of the victim", "/a/"),
        token("order 18", "of the donor", "/a/"),
        token("order 19", "of nobody", "/a/"),
        token("order 20", "of the donor", "/b/"),
    ] {
        let created = client.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
    let fingerprint = client.get(VICTIM).await.body["fingerprint"].clone();
    fingerprint.as_str().unwrap().to_owned()
}
