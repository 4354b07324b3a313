//! Every operation that accepts a card number.

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{Client, TestResponse, TestVault, encrypt, grants, passes_luhn};
use http::Method;
use serde_json::{Value, json};

use super::{ALLOWED, candidates, card, holder, is_compared, start};

/// A request that submits a card number.
struct Attempt {
    method: Method,
    path: String,
    body: Value,
}

impl Attempt {
    fn post(path: &str, body: Value) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            body,
        }
    }

    fn patch(id: &str, body: Value) -> Self {
        Self {
            method: Method::PATCH,
            path: format!("/tokens/{id}"),
            body,
        }
    }

    async fn send(self, client: &Client) -> TestResponse {
        let response = match self.method {
            Method::PATCH => client.patch(&self.path, self.body).await,
            _ => client.post(&self.path, self.body).await,
        };
        // A tokenized value is replaced by nothing but an id.
        match response.body["a"][0].as_str() {
            Some(id) => client.get(&format!("/tokens/{id}")).await,
            None => response,
        }
    }
}

/// Resources an attacker creates first: a token to update, one with a fingerprint expression, and an encryption key.
struct Prepared {
    id: String,
    other: String,
    key: Value,
}

/// Number of known attack vectors.
const VECTORS: usize = 19;

/// One of the attack vectors, with its name.
fn vector(index: usize, prepared: &Prepared, number: &str) -> (&'static str, Attempt) {
    let (start, end) = number.split_at(8);
    let one_more = json!({"guess": number});
    let halves = json!({"a": start, "b": end});
    let encrypted = encrypt(&prepared.key, &json!({"number": number}).to_string());
    let query = json!({"query": format!("data:{number}")});
    let split = json!({"metadata": {"a": start, "b": end}});
    let token =
        |kind: &str, data: Value| Attempt::post("/tokens", json!({"type": kind, "data": data}));
    let intent = |kind: &str, data: Value| {
        Attempt::post("/token-intents", json!({"type": kind, "data": data}))
    };
    let with_fingerprint = |data: &Value, text: &str| {
        let body = json!({"type": "token", "data": data, "fingerprint_expression": text});
        Attempt::post("/tokens", body)
    };
    let mut deduplicated = card(number);
    deduplicated["deduplicate_token"] = json!(true);
    #[rustfmt::skip]
    let mut vectors: [(&'static str, Attempt); VECTORS] = [
        ("card", token("card", json!({"number": number}))),
        ("card number", token("card_number", json!(number))),
        ("network token", token("network_token", json!({"number": number}))),
        ("deduplicated", Attempt::post("/tokens", deduplicated)),
        ("encrypted", Attempt::post("/tokens", json!({"type": "card", "encrypted": encrypted}))),
        ("token", token("token", json!(number))),
        ("member of a token", token("token", json!({"pan": number}))),
        ("other member", with_fingerprint(&one_more, "{{ data.guess }}")),
        ("halves", with_fingerprint(&halves, "{{ data.a }}{{ data.b }}")),
        ("hidden", with_fingerprint(&one_more, "{{ data.guess | base64_encode }}")),
        ("tokenized card", Attempt::post("/tokenize", json!({"a": [card(number)]}))),
        ("tokenized value", Attempt::post("/tokenize", json!({"a": [number]}))),
        ("intent", intent("card", json!({"number": number}))),
        ("intent of a number", intent("card_number", json!(number))),
        ("intent of a token", intent("token", json!([number]))),
        ("patch", Attempt::patch(&prepared.id, json!({"data": {"number": number}}))),
        ("patched metadata", Attempt::patch(&prepared.other, split)),
        ("search", Attempt::post("/v2/tokens/search", query.clone())),
        ("older search", Attempt::post("/tokens/search", query)),
    ];
    vectors.swap(0, index);
    let [chosen, ..] = vectors;
    chosen
}

async fn prepare(vault: &TestVault, tenant: &Tenant, client: &Client) -> Prepared {
    let granted = grants(&[Permission::KeysCreate]);
    let manager = vault
        .holder(tenant, ApplicationKind::Management, granted)
        .await;
    let manager = vault.client_with(Some(&manager.key));
    let other = json!({"type": "token", "data": "a note", "metadata": {"a": "a", "b": "b"},
        "fingerprint_expression": "{{ metadata.a }}{{ metadata.b }}"});
    Prepared {
        id: client.post("/tokens", card("5555555555554444")).await.id(),
        other: client.post("/tokens", other).await.id(),
        key: manager.post("/keys", json!({})).await.body,
    }
}

/// Covers 23.2.
#[tokio::test]
async fn every_attack_vector_is_limited() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let numbers = &candidates()[..30];

    for index in 0..VECTORS {
        let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
        let client = vault.client_with(Some(&holder.key));
        let prepared = prepare(&vault, &tenant, &client).await;
        let (mut accepted, mut name) = (0, "");
        for number in numbers {
            let (vector_name, attempt) = vector(index, &prepared, number);
            name = vector_name;
            accepted += usize::from(is_compared(&attempt.send(&client).await));
        }

        assert_eq!(accepted, ALLOWED, "{name}");
    }
}

#[tokio::test]
async fn vectors_share_counts_and_repeats_are_compared_until_the_first_rejection() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let prepared = prepare(&vault, &tenant, &client).await;
    let numbers = candidates();

    for (index, number) in (0..VECTORS).zip(&numbers).take(ALLOWED) {
        let (name, attempt) = vector(index, &prepared, number);
        assert!(is_compared(&attempt.send(&client).await), "{name}");
    }
    for index in 0..VECTORS {
        let (name, again) = vector(index, &prepared, &numbers[index % ALLOWED]);
        assert!(is_compared(&again.send(&client).await), "{name}");
    }
    for index in 0..VECTORS {
        for number in [&numbers[500], &numbers[index % ALLOWED]] {
            let (name, attempt) = vector(index, &prepared, number);
            // A patch with the number that the token already has is not an attempt.
            if name != "patch" {
                assert!(!is_compared(&attempt.send(&client).await), "{name}");
            }
        }
    }
}

/// Card numbers of any prefix count, in every search.
#[tokio::test]
async fn numbers_of_other_card_schemes_are_counted_in_searches() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    for bin in ["50669911", "97920300", "12345678", "79263999"] {
        let all = (0..10_000).map(|middle| format!("{bin}{middle:04}1118"));
        let numbers: Vec<String> = all.filter(|number| passes_luhn(number)).take(30).collect();
        for path in ["/v2/tokens/search", "/tokens/search"] {
            let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
            let client = vault.client_with(Some(&holder.key));
            let mut accepted = 0;
            for number in &numbers {
                let query = json!({"query": format!("data:{number}")});
                accepted += usize::from(is_compared(&client.post(path, query).await));
            }
            assert_eq!(accepted, ALLOWED, "{bin} {path}");
        }
    }
}
