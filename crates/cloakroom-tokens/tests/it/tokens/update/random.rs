//! Random updates, checked against newly created tokens.

use cloakroom_testkit::{Client, SeededRng, TestResponse};
use http::StatusCode;
use serde_json::{Value, json};

use super::{assert_consistent, uuid_of};
use crate::tokens::{create, setup};

/// A token that is patched at random, and the state that its row does not show.
struct TrackedToken {
    path: String,
    kind: &'static str,
    /// Only explicit values: absent while the default of the type applies.
    search_indexes: Option<Value>,
    fingerprint_expression: Option<Value>,
    claims: bool,
}

impl TrackedToken {
    async fn create(client: &Client, kind: &'static str) -> Self {
        let data = match kind {
            "card" => json!({"number": "4242424242424242"}),
            "social_security_number" => json!("078-05-1120"),
            _ => json!({"a": "1"}),
        };
        Self {
            path: create(client, json!({"type": kind, "data": data})).await,
            kind,
            search_indexes: None,
            fingerprint_expression: None,
            claims: false,
        }
    }

    /// Draws from few values, so that tokens often become duplicates.
    fn random_patch(&self, chance: &mut SeededRng) -> Value {
        let mut patch = json!({});
        if chance.one_in(2) {
            let digit = *chance.pick(&["1", "2", "3"]);
            patch["data"] = match self.kind {
                "card" => {
                    let numbers = ["4242424242424242", "5555555555554444", "378282246310005"];
                    json!({"number": chance.pick(&numbers), "expiration_month": digit})
                }
                "social_security_number" => json!(format!("{digit}00-00-0000")),
                _ if chance.one_in(4) => json!({"b": null}),
                _ => json!({ *chance.pick(&["a", "b"]): digit }),
            };
        }
        if chance.one_in(3) {
            let value = chance.pick(&[json!("1"), json!("2"), json!(null)]).clone();
            let entry = json!({ *chance.pick(&["k", "l", "m"]): value });
            patch["metadata"] = chance.pick(&[entry.clone(), entry, json!(null)]).clone();
        }
        if chance.one_in(3) {
            let containers = [json!(["/x/"]), json!(["/x/y/"]), json!(null)];
            patch["containers"] = chance.pick(&containers).clone();
        }
        if chance.one_in(4) {
            let indexes = [
                json!(["{{ data | stringify }}"]),
                json!(["{{ data.a }}", "{{ data | stringify | upcase }}"]),
                json!([]),
                json!(null),
            ];
            patch["search_indexes"] = chance.pick(&indexes).clone();
        }
        if chance.one_in(5) {
            let expressions = [
                json!("{{ data | stringify }}"),
                json!("{{ metadata.k }}"),
                json!(null),
            ];
            patch["fingerprint_expression"] = chance.pick(&expressions).clone();
        }
        if chance.one_in(2) {
            patch["deduplicate_token"] = json!(chance.one_in(2));
        }
        if chance.one_in(6) {
            patch["mask"] = chance
                .pick(&[json!("m"), json!({"a": "{{ data }}"}), json!(null)])
                .clone();
        }
        patch
    }

    /// Sends a random patch and tracks its effect.
    async fn update(&mut self, client: &Client, chance: &mut SeededRng) {
        let patch = self.random_patch(chance);
        let before = client.get(&self.path).await;
        let response = client.patch(&self.path, patch.clone()).await;
        let after = client.get(&self.path).await;
        let deduplicated = response.body["_extras"]["deduplicated"] == true;
        if deduplicated || response.status == StatusCode::BAD_REQUEST {
            assert_eq!(after.bytes, before.bytes, "{patch}");
            return;
        }
        assert_eq!(
            response.status,
            StatusCode::OK,
            "{patch}: {}",
            response.body
        );
        let fingerprint_and_container = |response: &TestResponse| {
            let names = ["fingerprint", "containers"];
            names.map(|name| response.body[name].clone())
        };
        self.claims &= fingerprint_and_container(&before) == fingerprint_and_container(&after);
        self.claims |= patch["deduplicate_token"] == true && after.body["fingerprint"].is_string();
        match patch.get("search_indexes") {
            Some(Value::Null) => self.search_indexes = Some(json!([])),
            Some(given) => self.search_indexes = Some(given.clone()),
            None => {}
        }
        match patch.get("fingerprint_expression") {
            Some(Value::Null) => self.fingerprint_expression = None,
            Some(given) => self.fingerprint_expression = Some(given.clone()),
            None => {}
        }
    }

    /// Compares the derived values of this token with those of a new token in the same state.
    async fn check(&self, client: &Client, database: &tokio_postgres::Client) {
        let token = client.get(&self.path).await.body;
        let mut new = json!({"deduplicate_token": false});
        for name in ["type", "data", "metadata", "containers"] {
            new[name] = token[name].clone();
        }
        new["search_indexes"] = json!(self.search_indexes);
        new["fingerprint_expression"] = json!(self.fingerprint_expression);
        let path = create(client, new).await;
        let fresh = client.get(&path).await.body;

        let same = [
            "fingerprint",
            "fingerprint_expression",
            "search_indexes",
            "card",
            "metadata",
        ];
        for name in same {
            assert_eq!(token[name], fresh[name], "{name} of {token}");
        }
        let terms = terms_of(database, &self.path).await;
        assert_eq!(terms, terms_of(database, &path).await, "terms of {token}");
        client.delete(&path).await;
        let claims: i64 = database
            .query_one(
                "select count(*) from claim where token_id = $1",
                &[&uuid_of(&self.path)],
            )
            .await
            .unwrap()
            .get(0);
        assert_eq!(claims, i64::from(self.claims), "claims of {token}");
    }
}

/// The stored terms of a token, with their container paths.
async fn terms_of(database: &tokio_postgres::Client, path: &str) -> Vec<(Vec<u8>, String)> {
    let select = "select term, path from term where token_id = $1 order by term, path";
    let rows = database.query(select, &[&uuid_of(path)]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Covers 5.14, 7.15.
#[tokio::test]
async fn random_updates_leave_derived_values_consistent() {
    let (vault, _, client) = setup().await;
    let database = vault.database.connect().await;
    let mut chance = SeededRng::from_environment();
    let mut tokens = Vec::new();
    for kind in ["token", "token", "card", "card", "social_security_number"] {
        tokens.push(TrackedToken::create(&client, kind).await);
    }

    for round in 1..=150 {
        let token = &mut tokens[chance.below(5)];
        token.update(&client, &mut chance).await;
        if round % 10 == 0 {
            for token in &tokens {
                token.check(&client, &database).await;
            }
            assert_consistent(&vault).await;
        }
    }

    for token in &tokens {
        let deleted = client.delete(&token.path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
    let left = "select (select count(*) from token) + (select count(*) from term)
        + (select count(*) from claim) + (select count(*) from security_code)";
    let left: i64 = database.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}
