//! Tokens that a test refers to by name.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::TestResponse;
use crate::{Client, TestVault};

/// Tokens by the names a test assigned, and the client that created them.
pub struct NamedTokens {
    pub client: Client,
    /// Response bodies of the creation requests.
    pub bodies: BTreeMap<String, Value>,
    names: BTreeMap<String, String>,
}

impl NamedTokens {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            bodies: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Creates a token; the type defaults to `token`.
    pub async fn create(&mut self, name: &str, mut new: Value) {
        if new.get("type").is_none() {
            new["type"] = json!("token");
        }
        let created = self.client.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        self.names.insert(created.id(), name.to_owned());
        self.bodies.insert(name.to_owned(), created.body);
    }

    pub fn id(&self, name: &str) -> &str {
        self.bodies[name]["id"].as_str().unwrap()
    }

    /// The name of an item in a response.
    pub fn name(&self, item: &Value) -> &str {
        &self.names[item["id"].as_str().unwrap()]
    }

    /// The names of the tokens in a response, in its order.
    pub fn names(&self, response: &TestResponse) -> Vec<&str> {
        response
            .items()
            .iter()
            .map(|item| self.name(item))
            .collect()
    }

    /// Creates a token `seconds` after 2020-01-01 by the node's clock.
    pub async fn create_at(&mut self, vault: &TestVault, name: &str, seconds: i64, new: Value) {
        let start = Timestamp::from_second(1_577_836_800).unwrap();
        let at = start + SignedDuration::from_secs(seconds);
        vault.vault.clock.freeze(Some(at));
        self.create(name, new).await;
        vault.vault.clock.freeze(None);
    }

    /// Sets the expiry to now, without a sweep.
    pub async fn expire(&self, vault: &TestVault, name: &str) {
        let id = Uuid::parse_str(self.id(name)).unwrap();
        let sql = "update token set expires_at = now() where token_id = $1";
        let database = vault.database.connect().await;
        assert_eq!(database.execute(sql, &[&id]).await.unwrap(), 1);
    }
}
