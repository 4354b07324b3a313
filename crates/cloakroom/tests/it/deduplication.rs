//! Deduplication: when a token is met instead of made, which one, and what its finder sees.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestVault, everything, grants, rule};

const CREATORS: usize = 64;
const ROUNDS: usize = 5;

/// A token with deduplication on, and more attributes.
fn equal(data: &Value, more: Value) -> Value {
    let mut new = json!({"type": "token", "data": data, "deduplicate_token": true});
    for (name, value) in more.as_object().unwrap() {
        new[name] = value.clone();
    }
    new
}

async fn create(client: &Client, new: Value) -> Answer {
    let answer = client.post("/tokens", new).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    answer
}

async fn updating_tenant(vault: &TestVault) -> Tenant {
    vault
        .tenant_with(&[("token_deduplication_behavior", "update_existing")])
        .await
}

fn is_met(answer: &Answer) -> bool {
    answer.body["_extras"]["deduplicated"].as_bool().unwrap()
}

async fn counts(vault: &TestVault) -> (i64, i64) {
    let sql = "select (select count(*) from token), (select count(*) from claim)";
    let row = vault
        .database
        .connect()
        .await
        .query_one(sql, &[])
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

/// Lets every token that has an expiry reach it, as far as the database is concerned.
async fn expire_all(vault: &TestVault) {
    let sql = "update token set expires_at = now() where expires_at is not null";
    vault
        .database
        .connect()
        .await
        .execute(sql, &[])
        .await
        .unwrap();
}

/// Covers 7.1, 3.11.
#[tokio::test]
async fn the_request_decides_and_otherwise_the_tenant() {
    let vault = TestVault::start().await;

    for setting in [false, true] {
        let tenant = vault
            .tenant_with(&[("deduplicate_tokens", &setting.to_string())])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let cases = [
            (json!({}), setting),
            (json!({"deduplicate_token": null}), setting),
            (json!({"deduplicate_token": true}), true),
            (json!({"deduplicate_token": false}), false),
        ];
        create(&client, json!({"type": "token", "data": "x"})).await;
        for (mut new, expected) in cases {
            new["type"] = json!("token");
            new["data"] = json!("x");
            let answer = create(&client, new.clone()).await;
            assert_eq!(is_met(&answer), expected, "{setting} {new}");
        }
    }
}

/// Covers 7.2, 7.7, 2.19.
#[tokio::test]
async fn it_applies_to_create_tokenize_and_update() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let first = create(&client, equal(&json!("x"), json!({}))).await;
    let other = create(&client, equal(&json!("y"), json!({}))).await;

    let created = client.post("/tokens", equal(&json!("x"), json!({}))).await;
    let tokenized = client
        .post("/tokenize", json!([equal(&json!("x"), json!({}))]))
        .await;
    let patch = json!({"data": "x", "deduplicate_token": true});
    let updated = client
        .patch(&format!("/tokens/{}", other.id()), patch)
        .await;

    let met = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    assert_eq!(first.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(
        (created.status, created.id()),
        (StatusCode::CREATED, first.id())
    );
    let location = format!("{}/tokens/{}", vault.base_url, first.id());
    assert_eq!(created.header("location"), location);
    assert_eq!(
        (tokenized.status, &tokenized.body[0]["id"]),
        (StatusCode::OK, &first.body["id"])
    );
    assert_eq!((updated.status, updated.id()), (StatusCode::OK, first.id()));
    for extras in [
        &created.body["_extras"],
        &tokenized.body[0]["_extras"],
        &updated.body["_extras"],
    ] {
        assert_eq!(*extras, met);
    }
    let unchanged = client.get(&format!("/tokens/{}", other.id())).await;
    assert_eq!(unchanged.body["data"], "y");
    assert_eq!(unchanged.body.get("modified_at"), None);
}

/// Covers 7.3.
#[tokio::test]
async fn tokens_are_equal_in_tenant_type_fingerprint_and_container() {
    let vault = TestVault::start().await;
    let (client, foreign) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let number = json!("4242424242424242");
    let own = create(&client, equal(&number, json!({"containers": ["/a/"]}))).await;

    let differing = [
        (&client, json!({"containers": ["/a/b/"]})),
        (&client, json!({"containers": ["/"]})),
        (&client, json!({"containers": ["/b/"]})),
        (
            &client,
            json!({"containers": ["/a/"], "type": "card_number"}),
        ),
        (
            &client,
            json!({"containers": ["/a/"], "data": "4111111111111111"}),
        ),
        (
            &client,
            json!({"containers": ["/a/"], "fingerprint_expression": "{{ data | last4 }}"}),
        ),
        (&foreign, json!({"containers": ["/a/"]})),
    ];
    let mut ids = BTreeSet::from([own.id()]);
    for (client, more) in differing {
        let answer = create(client, equal(&number, more.clone())).await;
        assert!(!is_met(&answer), "{more}");
        assert!(ids.insert(answer.id()), "{more}");
    }
    let same = [
        json!({"containers": ["/A/"]}),
        json!({"containers": ["/a/"], "metadata": {"k": "v"}, "mask": "x", "expires_at": "2040-01-01"}),
        json!({"containers": ["/a/"], "fingerprint_expression": "{{ data | stringify }}"}),
    ];
    for more in same {
        let answer = create(&client, equal(&number, more.clone())).await;
        assert_eq!((is_met(&answer), answer.id()), (true, own.id()), "{more}");
    }
}

/// Covers 7.4.
#[tokio::test]
async fn of_several_equal_tokens_the_oldest_is_met() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let mut ids = Vec::new();
    for n in 0..4 {
        let alone = json!({"deduplicate_token": false, "metadata": {"n": n.to_string()}});
        ids.push(create(&client, equal(&json!("x"), alone)).await.id());
    }
    let meet = async || create(&client, equal(&json!("x"), json!({}))).await.id();

    assert_eq!(meet().await, ids[0]);
    client.delete(&format!("/tokens/{}", ids[0])).await;
    assert_eq!(meet().await, ids[1]);

    // Of the same instant, the lowest id.
    let database = vault.database.connect().await;
    for table in ["token", "term"] {
        let sql = format!("update {table} set created_at = '2020-01-01'");
        database.execute(&sql, &[]).await.unwrap();
    }
    assert_eq!(meet().await, *ids[1..].iter().min().unwrap());
    assert_eq!(counts(&vault).await, (3, 0));
}

/// Covers 7.5, 7.10, 7.11, 3.18.
#[tokio::test]
async fn reading_leaves_the_token_that_was_met_as_it_is() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let more = json!({"id": "first one", "metadata": {"a": "1"}});
    let first = create(&client, equal(&json!("secret"), more)).await;
    create(
        &client,
        json!({"id": "taken", "type": "token", "data": "other"}),
    )
    .await;
    let path = "/tokens/first%20one";
    let before = client.get(path).await;

    let ignored = [
        json!({"id": "another"}),
        json!({"id": "taken"}),
        json!({"id": "{{ data }}"}),
        json!({
            "id": "another",
            "mask": "{{ data | reveal_last: 2 }}",
            "metadata": {"a": "2", "b": "3"},
            "search_indexes": ["{{ data }}"],
            "expires_at": "2040-01-01",
        }),
    ];
    for more in ignored {
        let met = create(&client, equal(&json!("secret"), more.clone())).await;
        let mut expected = before.body.clone();
        expected["_extras"] =
            json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
        assert_eq!(met.body, expected, "{more}");
        assert_eq!(met.id(), first.id());
    }
    assert_eq!(client.get(path).await.body, before.body);
    assert_eq!(
        client.get("/tokens/another").await.status,
        StatusCode::NOT_FOUND
    );
    // What is broken is refused all the same.
    let broken = client
        .post("/tokens", equal(&json!("secret"), json!({"id": "a/b"})))
        .await;
    assert_eq!(broken.refused(), ["id"]);
    assert_eq!(counts(&vault).await, (2, 1));
}

/// Covers 7.6, 7.7.
#[tokio::test]
async fn updating_merges_data_and_metadata_into_the_token_that_was_met() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let first = vault.client(&tenant, everything(Transform::Reveal)).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let second = vault.client_with(Some(&holder.key));
    let card = |data: Value, metadata: Value| json!({"type": "card", "data": data, "metadata": metadata, "deduplicate_token": true});

    let data = json!({"number": "4242424242424242", "expiration_month": 4, "name": "Ada"});
    let created = create(&first, card(data, json!({"a": "1", "b": "2"}))).await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": "12", "expiration_year": 2040});
    let met = create(&second, card(data, json!({"b": "3", "c": "4"}))).await;
    let found = first.get(&format!("/tokens/{}", created.id())).await;

    let merged = json!({
        "number": "4242424242424242", "expiration_month": 12, "name": "Ada", "expiration_year": 2040,
    });
    assert_eq!(met.id(), created.id());
    let extras = json!({"deduplicated": true, "deduplication_behavior": "update_existing"});
    assert_eq!(met.body["_extras"], extras);
    assert_eq!(met.body["data"], merged);
    assert_eq!(met.body["metadata"], json!({"a": "1", "b": "3", "c": "4"}));
    assert_eq!(met.body["modified_by"], holder.application.to_string());
    assert_eq!(met.body["created_by"], created.body["created_by"]);
    let mut told = met.body.clone();
    told.as_object_mut().unwrap().shift_remove("_extras");
    assert_eq!(found.body, told);
    assert_eq!(counts(&vault).await, (1, 1));
    // Found by what it became, and no longer by what it was.
    for (query, hits) in [
        ("metadata.b:3", 1),
        ("metadata.c:4", 1),
        ("metadata.b:2", 0),
    ] {
        let page = first
            .post("/v2/tokens/search", json!({"query": query}))
            .await;
        assert_eq!(page.body["data"].as_array().unwrap().len(), hits, "{query}");
    }
}

/// Covers 7.12, 7.10.
#[tokio::test]
async fn updating_applies_the_attributes_that_were_sent_and_no_others() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let data = json!({"a": "x"});
    let first = json!({
        "mask": {"a": "{{ data.a }}"},
        "search_indexes": ["{{ data.a }}"],
        "fingerprint_expression": "{{ data.a }}",
        "expires_at": "2040-01-01",
        "metadata": {"k": "v"},
    });
    let created = create(&client, equal(&data, first.clone())).await;
    let kept = [
        "mask",
        "search_indexes",
        "fingerprint_expression",
        "expires_at",
        "metadata",
        "fingerprint",
    ];

    let bare = json!({"fingerprint_expression": "{{ data.a }}", "id": "ignored"});
    let untouched = create(&client, equal(&data, bare)).await;
    assert_eq!(untouched.id(), created.id());
    for name in kept {
        assert_eq!(untouched.body[name], created.body[name], "{name}");
    }

    let more = json!({
        "mask": {"b": "{{ data.b }}"},
        "search_indexes": ["{{ data.b }}"],
        "fingerprint_expression": "{{ data.a | append: '' }}",
        "expires_at": "2041-01-01T00:00:00+01:00",
    });
    let changed = create(&client, equal(&json!({"a": "x", "b": "y"}), more.clone())).await;
    assert_eq!(changed.id(), created.id());
    assert_eq!(changed.body["data"], json!({"a": "x", "b": "y"}));
    assert_eq!(
        changed.body["mask"],
        json!({"a": "{{ data.a }}", "b": "{{ data.b }}"})
    );
    for name in ["search_indexes", "fingerprint_expression", "expires_at"] {
        assert_eq!(changed.body[name], more[name], "{name}");
    }
    assert_eq!(changed.body["metadata"], json!({"k": "v"}));
    let hits = async |value: &str| {
        let query = json!({"query": format!("data:{value}")});
        client.post("/v2/tokens/search", query).await.body["data"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((hits("x").await, hits("y").await), (0, 1));

    // The rules of an update hold: the merged token must have what it is searched by, and a future.
    for (more, path) in [
        (
            json!({"search_indexes": ["{{ data.c }}"]}),
            "search_indexes[0]",
        ),
        (json!({"expires_at": "2020-01-01"}), "expires_at"),
    ] {
        let mut more = more;
        more["fingerprint_expression"] = json!("{{ data.a }}");
        let refused = client.post("/tokens", equal(&data, more.clone())).await;
        assert_eq!(refused.refused(), [path], "{more}: {}", refused.body);
    }
    assert_eq!(counts(&vault).await, (1, 1));
}

/// Covers 7.8, 7.9.
#[tokio::test]
async fn whoever_may_not_read_what_was_met_learns_only_that_it_exists() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;

    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
        let new = json!({
            "type": "card",
            "data": {"number": "4242424242424242"},
            "metadata": {"k": "v"},
            "containers": ["/a/"],
            "expires_at": "2040-01-01",
            "deduplicate_token": true,
        });
        let created = create(&owner, new.clone()).await;
        let extras = json!({"deduplicated": true, "deduplication_behavior": behavior});
        let mut redacted = json!({"_extras": extras});
        for name in ["id", "type", "tenant_id", "fingerprint", "containers"] {
            redacted[name] = created.body[name].clone();
        }

        let reading = |container: &str, transform| Grants {
            rules: vec![rule(1, container, transform, &[TokenRead])],
            ..grants(&[TokenCreate])
        };
        let strangers = [
            grants(&[TokenCreate]),
            reading("/b/", Transform::Reveal),
            reading("/a/b/", Transform::Reveal),
        ];
        for granted in strangers {
            let client = vault.client(&tenant, granted).await;
            let met = create(&client, new.clone()).await;
            assert_eq!(met.body, redacted, "{behavior}");
        }
        let public = vault
            .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
            .await;
        let met = create(&vault.client_with(Some(&public.key)), new.clone()).await;
        assert_eq!(met.body, redacted, "{behavior}");

        // Reading decides how the data appears, whatever the grant for creating says.
        let shown = [
            (Transform::Reveal, Some(json!("4242424242424242"))),
            (Transform::Mask, Some(json!("XXXXXXXXXXXX4242"))),
            (Transform::Redact, None),
        ];
        for (transform, number) in shown {
            let client = vault.client(&tenant, reading("/", transform)).await;
            let met = create(&client, new.clone()).await;
            let read = client.get(&format!("/tokens/{}", created.id())).await;
            let mut expected = read.body.clone();
            expected["_extras"] = extras.clone();
            assert_eq!(met.body, expected, "{behavior} {transform:?}");
            let data = met.body.get("data").map(|data| data["number"].clone());
            assert_eq!(data, number, "{behavior} {transform:?}");
            assert_eq!(met.body["metadata"], json!({"k": "v"}));
        }
    }
}

/// Many clients of one application, spread over two nodes.
struct Crowd {
    clients: Vec<Client>,
}

impl Crowd {
    async fn gather(vault: &TestVault, node: &TestVault, tenant: &Tenant) -> Self {
        let holder = vault
            .holder(
                tenant,
                ApplicationKind::Private,
                everything(Transform::Reveal),
            )
            .await;
        let at = |n: usize| [vault, node][n % 2].client_with(Some(&holder.key));
        Self {
            clients: (0..CREATORS).map(at).collect(),
        }
    }

    /// Everyone asks for the same at once.
    async fn create(&self, new: impl Fn(usize) -> Value) -> Vec<Answer> {
        let mut creating = tokio::task::JoinSet::new();
        for (n, client) in self.clients.iter().cloned().enumerate() {
            let new = new(n);
            creating.spawn(async move { client.post("/tokens", new).await });
        }
        creating.join_all().await
    }
}

fn assert_one(answers: &[Answer], round: usize) {
    for answer in answers {
        assert_eq!(
            answer.status,
            StatusCode::CREATED,
            "round {round}: {}",
            answer.body
        );
    }
    let ids: BTreeSet<String> = answers.iter().map(Answer::id).collect();
    let made = answers.iter().filter(|answer| !is_met(answer)).count();
    assert_eq!((ids.len(), made), (1, 1), "round {round}: {ids:?}");
}

/// I04: one token per fingerprint and container, however many want it at once.
///
/// Covers 7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_equal_creates_at_once_one_makes_a_token() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let crowd = Crowd::gather(&vault, &node, &tenant).await;
    let started_at = Instant::now();

    for round in 0..ROUNDS {
        let answers = crowd
            .create(|n| {
                equal(
                    &json!(["round", round]),
                    json!({"metadata": {"n": n.to_string()}}),
                )
            })
            .await;
        assert_one(&answers, round);
        let made = i64::try_from(round + 1).unwrap();
        assert_eq!(counts(&vault).await, (made, made), "round {round}");
    }
    println!(
        "{ROUNDS} rounds of {CREATORS} equal creates on two nodes: one token each, {} ms a round",
        started_at.elapsed().as_millis() / ROUNDS as u128
    );
}

/// Covers 7.10, 7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_creates_that_want_the_same_id_meet_instead_of_conflicting() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let crowd = Crowd::gather(&vault, &node, &tenant).await;

    for round in 0..ROUNDS {
        let id = format!("round {round}");
        let answers = crowd
            .create(|_| equal(&json!(round), json!({"id": id})))
            .await;
        assert_one(&answers, round);
        assert_eq!(answers[0].id(), id);
    }
}

/// Covers 7.13, 7.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_equal_creates_at_once_are_all_merged() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = updating_tenant(&vault).await;
    let crowd = Crowd::gather(&vault, &node, &tenant).await;
    let started_at = Instant::now();

    // Everyone brings an entry of their own, as many as metadata may have.
    let own = |n: usize| json!({"metadata": {(format!("k{}", n % 50)): "v"}});
    let answers = crowd.create(|n| equal(&json!("x"), own(n))).await;

    println!(
        "{CREATORS} merges into one token: {} ms",
        started_at.elapsed().as_millis()
    );
    assert_one(&answers, 0);
    let path = format!("/tokens/{}", answers[0].id());
    let found = crowd.clients[0].get(&path).await;
    assert_eq!(found.body["metadata"].as_object().unwrap().len(), 50);
}

/// Covers 7.13, 7.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_that_become_equal_at_once_meet_the_first() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let crowd = Crowd::gather(&vault, &node, &tenant).await;

    for round in 0..ROUNDS {
        let different = crowd.create(|n| equal(&json!([round, n]), json!({}))).await;
        let mut updating = tokio::task::JoinSet::new();
        for (client, token) in crowd.clients.iter().cloned().zip(&different) {
            let path = format!("/tokens/{}", token.id());
            let patch = json!({"data": [round, "same"], "deduplicate_token": true});
            updating.spawn(async move { client.patch(&path, patch).await });
        }
        let updated = updating.join_all().await;

        for answer in &updated {
            assert_eq!(
                answer.status,
                StatusCode::OK,
                "round {round}: {}",
                answer.body
            );
        }
        let ids: BTreeSet<String> = updated.iter().map(Answer::id).collect();
        let made = updated.iter().filter(|answer| !is_met(answer)).count();
        assert_eq!((ids.len(), made), (1, 1), "round {round}");
    }
}

/// Covers 7.14.
#[tokio::test]
async fn an_expired_token_is_never_met_and_never_in_the_way() {
    let vault = TestVault::start().await;
    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let data = json!("x");

        // It holds the claim, and nobody has swept it.
        let expired = create(
            &client,
            equal(&data, json!({"id": "the id", "expires_at": "2040-01-01"})),
        )
        .await;
        expire_all(&vault).await;
        let fresh = create(&client, equal(&data, json!({"expires_at": "2040-01-01"}))).await;
        assert!(!is_met(&fresh), "{behavior}");
        assert_ne!(fresh.id(), expired.id());

        // The same again, and this time even the id is wanted.
        expire_all(&vault).await;
        let third = create(&client, equal(&data, json!({"id": fresh.id()}))).await;
        assert_eq!(
            (is_met(&third), third.id()),
            (false, fresh.id()),
            "{behavior}"
        );
        let met = create(&client, equal(&data, json!({}))).await;
        assert_eq!((is_met(&met), met.id()), (true, third.id()), "{behavior}");
    }
    assert_eq!(counts(&vault).await, (2, 2));
}

/// Covers 7.14, 8.9.
#[tokio::test]
async fn an_expired_claim_is_not_in_the_way_of_an_update() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create(
        &client,
        equal(&json!("x"), json!({"expires_at": "2040-01-01"})),
    )
    .await;
    let other = create(&client, equal(&json!("y"), json!({}))).await;
    expire_all(&vault).await;

    let patch = json!({"data": "x", "deduplicate_token": true});
    let updated = client
        .patch(&format!("/tokens/{}", other.id()), patch)
        .await;

    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
    assert_eq!(
        (updated.id(), &updated.body["data"]),
        (other.id(), &json!("x"))
    );
    let met = create(&client, equal(&json!("x"), json!({}))).await;
    assert_eq!(met.id(), other.id());
    assert_eq!(counts(&vault).await, (1, 1));
}

/// Covers 7.15.
#[tokio::test]
async fn deleting_or_changing_a_token_makes_way_for_another() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let data = json!({"a": 1});
    let ways = [
        None,
        Some(json!({"data": {"a": 2}})),
        Some(json!({"containers": ["/elsewhere/"]})),
        Some(json!({"fingerprint_expression": "{{ data.a | append: 'x' }}"})),
    ];
    let mut made = BTreeSet::new();
    for way in &ways {
        let token = create(&client, equal(&data, json!({}))).await;
        assert!(!is_met(&token), "{way:?}");
        assert!(made.insert(token.id()));
        let path = format!("/tokens/{}", token.id());
        // With and without deduplication: an update that does not ask for it frees the place as well.
        let status = match way {
            None => client.delete(&path).await.status,
            Some(patch) => client.patch(&path, patch.clone()).await.status,
        };
        assert!(status.is_success(), "{way:?}");
    }
    let last = create(&client, equal(&data, json!({}))).await;
    assert!(!is_met(&last));
    assert_eq!(counts(&vault).await, (4, 1));

    // Whoever changes and asks for deduplication takes the new place.
    let patch = json!({"data": {"a": 3}, "deduplicate_token": true});
    client.patch(&format!("/tokens/{}", last.id()), patch).await;
    let met = create(&client, equal(&json!({"a": 3}), json!({}))).await;
    assert_eq!(met.id(), last.id());
    assert_eq!(counts(&vault).await, (4, 1));
}

/// Covers 7.4, 7.6.
#[tokio::test]
async fn the_oldest_is_merged_into_even_when_another_holds_the_claim() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let older = create(&client, json!({"type": "token", "data": "other"})).await;
    let claimant = create(&client, equal(&json!("x"), json!({}))).await;
    // Without deduplication the older one may become equal to the one that holds the claim.
    let patch = json!({"data": "x", "deduplicate_token": false});
    let path = format!("/tokens/{}", older.id());
    assert_eq!(client.patch(&path, patch).await.status, StatusCode::OK);

    let started_at = Instant::now();
    let met = create(&client, equal(&json!("x"), json!({"metadata": {"k": "v"}}))).await;

    assert_ne!(older.id(), claimant.id());
    assert_eq!(
        (met.id(), &met.body["metadata"]["k"]),
        (older.id(), &json!("v"))
    );
    assert!(started_at.elapsed() < Duration::from_secs(5));
    assert_eq!(counts(&vault).await, (2, 1));
}
