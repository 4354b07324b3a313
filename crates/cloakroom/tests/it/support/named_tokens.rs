//! Tokens that a test refers to by name.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::TestResponse;
use super::{Client, TestVault};

/// Tokens by the names a test assigned, and the client that created them.
pub(crate) struct NamedTokens {
    pub(crate) client: Client,
    /// Response bodies of the creation requests.
    pub(crate) bodies: BTreeMap<String, Value>,
    names: BTreeMap<String, String>,
}

impl NamedTokens {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            bodies: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Creates a token; the type defaults to `token`.
    pub(crate) async fn create(&mut self, name: &str, mut new: Value) {
        if new.get("type").is_none() {
            new["type"] = json!("token");
        }
        let created = self.client.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        self.names.insert(created.id(), name.to_owned());
        self.bodies.insert(name.to_owned(), created.body);
    }

    pub(crate) fn id(&self, name: &str) -> &str {
        self.bodies[name]["id"].as_str().unwrap()
    }

    /// The name of an item in a response.
    pub(crate) fn name(&self, item: &Value) -> &str {
        &self.names[item["id"].as_str().unwrap()]
    }

    /// The names of the tokens in a response, in its order.
    pub(crate) fn names(&self, response: &TestResponse) -> Vec<&str> {
        response
            .items()
            .iter()
            .map(|item| self.name(item))
            .collect()
    }

    /// Sets the creation time to `seconds` after 2020-01-01.
    pub(crate) async fn set_created_at(&self, vault: &TestVault, name: &str, seconds: i64) {
        let id = Uuid::parse_str(self.id(name)).unwrap();
        let database = vault.database.connect().await;
        for table in ["token", "term"] {
            let sql = format!(
                "update {table}
                set created_at = timestamptz '2020-01-01T00:00:00Z' + make_interval(secs => $2)
                where token_id = $1"
            );
            #[expect(
                clippy::cast_precision_loss,
                reason = "tests use small numbers of seconds"
            )]
            let seconds = seconds as f64;
            database.execute(&sql, &[&id, &seconds]).await.unwrap();
        }
    }

    /// Sets the expiry to now, without a sweep.
    pub(crate) async fn expire(&self, vault: &TestVault, name: &str) {
        let id = Uuid::parse_str(self.id(name)).unwrap();
        let sql = "update token set expires_at = now() where token_id = $1";
        let database = vault.database.connect().await;
        assert_eq!(database.execute(sql, &[&id]).await.unwrap(), 1);
    }
}
