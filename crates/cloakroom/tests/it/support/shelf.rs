//! Tokens that a test calls by names of its own.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Answer;
use super::{Client, TestVault};

/// Tokens by the names that a test gave them, and the client that put them there.
pub(crate) struct Shelf {
    pub(crate) client: Client,
    /// What creating each was answered with.
    pub(crate) bodies: BTreeMap<String, Value>,
    names: BTreeMap<String, String>,
}

impl Shelf {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            bodies: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Creates a token, of type `token` unless it says otherwise.
    pub(crate) async fn put(&mut self, name: &str, mut new: Value) {
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

    /// What the test calls this item of an answer.
    pub(crate) fn name(&self, item: &Value) -> &str {
        &self.names[item["id"].as_str().unwrap()]
    }

    /// The names of the tokens in an answer, in its order.
    pub(crate) fn names(&self, answer: &Answer) -> Vec<&str> {
        answer.items().iter().map(|item| self.name(item)).collect()
    }

    /// Makes a token as old as this many seconds after a day long ago.
    pub(crate) async fn date(&self, vault: &TestVault, name: &str, seconds: i64) {
        let id = Uuid::parse_str(self.id(name)).unwrap();
        let database = vault.database.connect().await;
        for table in ["token", "term"] {
            let sql = format!(
                "update {table}
                set created_at = timestamptz '2020-01-01T00:00:00Z' + make_interval(secs => $2)
                where token_id = $1"
            );
            #[expect(clippy::cast_precision_loss, reason = "a test counts few seconds")]
            let seconds = seconds as f64;
            database.execute(&sql, &[&id, &seconds]).await.unwrap();
        }
    }

    /// Lets the time of a token come, without any sweep.
    pub(crate) async fn expire(&self, vault: &TestVault, name: &str) {
        let id = Uuid::parse_str(self.id(name)).unwrap();
        let sql = "update token set expires_at = now() where token_id = $1";
        let database = vault.database.connect().await;
        assert_eq!(database.execute(sql, &[&id]).await.unwrap(), 1);
    }
}
