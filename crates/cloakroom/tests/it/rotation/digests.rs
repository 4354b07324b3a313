//! Rotation of the keys of fingerprints and search terms: tokens are found, and deduplicated, before, during and after.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloakroom::rate_limits;
use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_testkit::{Client, TestVault, passes_luhn};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Fixture, HOLDER};

/// More than two pages of the rewriting.
const TOKENS: usize = 410;
/// Concurrent pairs of creates: enough that some of them overlap.
const PAIRS: usize = 40;

/// All stored digests.
const ALL: &str = "select fingerprint from token where fingerprint is not null
    union select unnest(terms) from token
    union select term from term
    union select fingerprint from claim
    union select fingerprint from token_intent where fingerprint is not null
    union select fingerprint from fingerprint_pair";
/// Fingerprints, and the terms that are a part of them.
const FINGERPRINTS: &str = "with print as (
        select fingerprint from token where fingerprint is not null
        union select fingerprint from claim
        union select fingerprint from token_intent where fingerprint is not null
    )
    select fingerprint from print union select substring(fingerprint from 1 for 16) from print";
/// Search terms that are no part of a fingerprint.
const TERMS: &str = "select term from term
    except select substring(fingerprint from 1 for 16) from token";

fn unique(value: &str) -> Value {
    json!({"type": "token", "data": value, "metadata": {"value": value}, "search_indexes": ["{{ data }}"],
        "deduplicate_token": true})
}

/// A vault with tokens that have fingerprints, claims and terms.
async fn fixture(tokens: usize) -> (Fixture, Vec<Value>) {
    let fixture = Fixture::create(1).await;
    let mut created = Vec::new();
    for number in 0..tokens {
        let new = unique(&format!("value {number}"));
        let token = fixture.client.post("/tokens", new).await;
        assert_eq!(token.status, 201, "{}", token.body);
        created.push(token.body);
    }
    (fixture, created)
}

impl Fixture {
    async fn start_of(&self, purpose: KeyPurpose) {
        let vault = &self.vault.vault;
        rotation::start(vault, self.tenant.id, purpose, "tests")
            .await
            .unwrap();
    }

    async fn retire_of(&self, purpose: KeyPurpose) {
        let vault = &self.vault.vault;
        rotation::retire(vault, self.tenant.id, purpose)
            .await
            .unwrap();
    }

    async fn digests(&self, sql: &str) -> BTreeSet<Vec<u8>> {
        let rows = self.database.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Finds ids by a query.
async fn search(client: &Client, query: String) -> BTreeSet<String> {
    let found = client
        .post("/v2/tokens/search", json!({"query": query, "size": 50}))
        .await;
    assert_eq!(found.status, 200, "{query}: {}", found.body);
    let id = |token: &Value| token["id"].as_str().unwrap().to_owned();
    found.items().iter().map(id).collect()
}

/// Asserts that a token is found by its value, its metadata and a fingerprint, with both interfaces.
async fn assert_found(client: &Client, token: &Value, fingerprint: &Value) {
    let id = token["id"].as_str().unwrap();
    let value = token["data"].as_str().unwrap();
    let fingerprint = fingerprint.as_str().unwrap();
    let queries = [
        format!("data:\"{value}\""),
        format!("metadata.value:\"{value}\""),
        format!("fingerprint:{fingerprint}"),
    ];
    for query in queries {
        let found = search(client, query.clone()).await;
        assert!(found.contains(id), "{query}: {found:?}");
    }
    let path = format!("/tokens?metadata.value={}", value.replace(' ', "%20"));
    let listed = client.get(&path).await;
    assert_eq!(listed.items().len(), 1, "{}", listed.body);
}

/// Creates the same new values on two nodes at once, and asserts that each became one token. Returns values and ids.
async fn create_pairs(one: &Client, other: &Client, name: &str) -> Vec<(String, String)> {
    let pairs = (0..PAIRS).map(|number| async move {
        let value = format!("{name} {number}");
        let (one, other) = tokio::join!(
            one.post("/tokens", unique(&value)),
            other.post("/tokens", unique(&value))
        );
        for created in [&one, &other] {
            assert_eq!(created.status, 201, "{value}: {}", created.body);
        }
        (value, one.id(), other.id())
    });
    let pairs = join_all(pairs).await;
    let twice = pairs.iter().filter(|(_, one, other)| one != other).count();
    assert_eq!(twice, 0, "values that became two tokens: {name}");
    let pairs = pairs.into_iter();
    pairs.map(|(value, id, _)| (value, id)).collect()
}

/// Searches all tokens on a node until it is stopped, and returns those that were not found.
fn keep_searching(
    searches: &mut JoinSet<Vec<String>>,
    client: Client,
    tokens: &[Value],
    stop: &Arc<AtomicBool>,
) {
    let (tokens, stop) = (tokens.to_vec(), stop.clone());
    searches.spawn(async move {
        let mut missing = Vec::new();
        for token in tokens.iter().cycle() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let (id, value) = (
                token["id"].as_str().unwrap(),
                token["data"].as_str().unwrap(),
            );
            let fingerprint = token["fingerprint"].as_str().unwrap();
            for query in [
                format!("data:\"{value}\""),
                format!("metadata.value:\"{value}\""),
                format!("fingerprint:{fingerprint}"),
            ] {
                if !search(&client, query.clone()).await.contains(id) {
                    missing.push(query);
                }
            }
            // Deduplication finds it too.
            let again = client.post("/tokens", unique(value)).await;
            if again.body["id"] != *id {
                missing.push(format!("deduplication: {}", again.body));
            }
        }
        missing
    });
}

async fn learn(node: &TestVault) {
    rate_limits::write_heartbeat(&node.vault.rate_limits)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_found_while_the_keys_of_their_digests_are_rotated() {
    for purpose in [KeyPurpose::Index, KeyPurpose::Fingerprint] {
        let (fixture, tokens) = fixture(TOKENS).await;
        let other = fixture.vault.second_node().await;
        let on_other = fixture.client.at(&other.base_url);
        let (mut searches, stop) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        for client in [&fixture.client, &on_other] {
            keep_searching(&mut searches, client.clone(), &tokens, &stop);
        }

        fixture.start_of(purpose).await;
        let mut phases = BTreeSet::new();
        while fixture.phase().await < Phase::Proved {
            // Of the searches, some run on a node that knows less.
            rotation::work(&fixture.vault.vault, HOLDER).await.unwrap();
            learn(&other).await;
            phases.insert(fixture.phase().await);
            for client in [&fixture.client, &on_other] {
                assert_found(client, &tokens[7], &tokens[7]["fingerprint"]).await;
            }
        }
        assert!(phases.contains(&Phase::Promoted), "{phases:?}");

        stop.store(true, Ordering::Relaxed);
        assert_eq!(searches.join_all().await.concat(), Vec::<String>::new());
        // Every token is also found by the fingerprint that it has now.
        for token in tokens.iter().step_by(20) {
            let id = token["id"].as_str().unwrap();
            let now = fixture.client.get(&format!("/tokens/{id}")).await.body;
            let changes = purpose == KeyPurpose::Fingerprint;
            assert_eq!(now["fingerprint"] != token["fingerprint"], changes);
            assert_found(&on_other, token, &token["fingerprint"]).await;
            assert_found(&fixture.client, token, &now["fingerprint"]).await;
        }
    }
}

#[tokio::test]
async fn all_digests_are_computed_with_the_new_key_and_the_old_one_is_gone() {
    for (purpose, sql) in [
        (KeyPurpose::Index, TERMS),
        (KeyPurpose::Fingerprint, FINGERPRINTS),
    ] {
        let (fixture, tokens) = fixture(5).await;
        let vault = &fixture.vault.vault;
        let before = fixture.digests(sql).await;
        assert!(before.len() > 5, "{before:?}");
        fixture.start_of(purpose).await;
        fixture.advance_to(Phase::Promoted).await;
        // Written with both versions known.
        let during = fixture.client.post("/tokens", unique("during")).await;
        fixture.advance_to(Phase::Proved).await;

        fixture.retire_of(purpose).await;

        let after = fixture.digests(ALL).await;
        assert_eq!(after.intersection(&before).count(), 0, "{purpose:?}");
        let keys = vault.keys.of(fixture.tenant.id).await.unwrap();
        assert_eq!(keys.active_version(purpose), Some(2));
        assert!(!keys.has_other_fingerprints());
        let database = &fixture.database;
        for token in tokens.iter().chain([&during.body]) {
            let value = token["data"].as_str().unwrap();
            let fingerprint = keys.fingerprint("token", value).as_bytes().to_vec();
            let term = keys.term("metadata", format!("5:value{value}").as_bytes());
            for (table, column, digest) in [
                ("token", "fingerprint", &fingerprint[..]),
                ("claim", "fingerprint", &fingerprint),
                ("term", "term", &fingerprint[..16]),
                ("term", "term", &term),
            ] {
                let sql = format!("select from {table} where {column} = $1");
                let rows = database.query(&sql, &[&digest]).await.unwrap();
                assert_eq!(rows.len(), 1, "{purpose:?}: {table}");
            }
            let path = format!("/tokens/{}", token["id"].as_str().unwrap());
            let now = fixture.client.get(&path).await.body;
            assert_found(&fixture.client, token, &now["fingerprint"]).await;
        }
        let rows = "select count(*) from fingerprint_pair";
        let pairs: i64 = database.query_one(rows, &[]).await.unwrap().get(0);
        assert_eq!(pairs, 0);
        let number = purpose.number();
        let stored =
            "select state, length(wrapped) from tenant_key where purpose = $1 and version = 1";
        let row = database.query_one(stored, &[&number]).await.unwrap();
        assert_eq!((row.get::<_, i16>(0), row.get::<_, i32>(1)), (4, 0));
        let findings = rotation::verify_proofs(vault).await.unwrap();
        assert_eq!(findings, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_in_neighboring_phases_create_no_duplicates() {
    let (fixture, _) = fixture(1).await;
    let other = fixture.vault.second_node().await;
    let (one, on_other) = (&fixture.client, fixture.client.at(&other.base_url));
    learn(&other).await;
    let mut created = create_pairs(one, &on_other, "before").await;

    // The first node knows each phase at once, the other one when it has a heartbeat.
    fixture.start_of(KeyPurpose::Fingerprint).await;
    fixture.vault.vault.keys.evict(fixture.tenant.id).await;
    created.extend(create_pairs(one, &on_other, "added").await);
    for phase in [Phase::Promoted, Phase::Closed, Phase::Rewriting] {
        learn(&other).await;
        fixture.advance_to(phase).await;
        created.extend(create_pairs(one, &on_other, &format!("{phase:?}")).await);
    }
    fixture.advance_to(Phase::Proved).await;
    created.extend(create_pairs(one, &on_other, "proved").await);
    learn(&other).await;
    fixture.retire_of(KeyPurpose::Fingerprint).await;
    created.extend(create_pairs(one, &on_other, "retired").await);
    // Everything that was created on the way is still recognized.
    for (value, id) in created {
        let again = one.post("/tokens", unique(&value)).await;
        assert_eq!(again.id(), id, "{value}");
    }
}

/// The database rejects what a node computed with keys that were replaced: it computes the digests again.
#[tokio::test]
async fn a_node_with_old_keys_stores_no_old_digest() {
    for purpose in [KeyPurpose::Index, KeyPurpose::Fingerprint] {
        let (fixture, tokens) = fixture(2).await;
        let other = fixture.vault.second_node().await;
        let late = fixture.client.at(&other.base_url);
        // The other node caches keys, and never learns of the rotation.
        assert_found(&late, &tokens[0], &tokens[0]["fingerprint"]).await;
        fixture.start_of(purpose).await;
        fixture.advance_to(Phase::Proved).await;

        let new = late.post("/tokens", unique("late")).await;
        assert_eq!(new.status, 201, "{}", new.body);
        let card = json!({"type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2040}});
        let intent = late.post("/token-intents", card).await;
        assert_eq!(intent.status, 201, "{}", intent.body);

        fixture.retire_of(purpose).await;
        let keys = fixture
            .vault
            .vault
            .keys
            .of(fixture.tenant.id)
            .await
            .unwrap();
        let print = keys.fingerprint("token", "late").as_bytes().to_vec();
        let sql = "select from token where fingerprint = $1";
        let rows = fixture.database.query(sql, &[&print]).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_found(&fixture.client, &new.body, &new.body["fingerprint"]).await;
        let intents = "select count(distinct fingerprint) from token_intent";
        let intents: i64 = fixture
            .database
            .query_one(intents, &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(intents, 1, "{purpose:?}");
    }
}

#[tokio::test]
async fn digests_that_were_skipped_are_found_by_the_proof() {
    for (purpose, sql) in [
        (KeyPurpose::Index, TERMS),
        (KeyPurpose::Fingerprint, FINGERPRINTS),
    ] {
        let (fixture, tokens) = fixture(5).await;
        let before = fixture.digests(sql).await;
        assert!(before.len() > 5, "{before:?}");
        fixture.start_of(purpose).await;
        fixture.advance_until("rotation.drained", 1).await;
        // SQL moves the position to the end of the last table, and leaves rows that no token names.
        fixture
            .execute("update key_rotation set phase = 4, step = 7")
            .await;
        fixture
            .execute("insert into term select tenant_id, term, '/elsewhere/', created_at, token_id from term")
            .await;
        fixture
            .execute("insert into claim select tenant_id, fingerprint, 7, token_id from claim")
            .await;

        fixture.advance_to(Phase::Proved).await;

        let pairs = "delete from fingerprint_pair";
        fixture.execute(pairs).await;
        let after = fixture.digests(ALL).await;
        assert_eq!(after.intersection(&before).count(), 0, "{purpose:?}");
        fixture.retire_of(purpose).await;
        for token in &tokens {
            let path = format!("/tokens/{}", token["id"].as_str().unwrap());
            let now = fixture.client.get(&path).await.body;
            assert_found(&fixture.client, token, &now["fingerprint"]).await;
        }
    }
}

/// Tenants receive an event when fingerprints change, because clients store them.
#[tokio::test]
async fn steps_of_the_fingerprint_key_are_events() {
    let (fixture, _) = fixture(1).await;
    let hook = json!({"name": "Prints", "url": fixture.destination.url("/prints"),
        "events": ["tenant.fingerprint-key.updated"]});
    assert_eq!(fixture.manager.post("/webhooks", hook).await.status, 201);

    for purpose in [KeyPurpose::Index, KeyPurpose::Fingerprint] {
        fixture.start_of(purpose).await;
        fixture.advance_to(Phase::Proved).await;
        fixture.retire_of(purpose).await;
    }

    let sql =
        "select payload from webhook_delivery where event_type = 'tenant.fingerprint-key.updated'";
    let rows = fixture.database.query(sql, &[]).await.unwrap();
    let payloads: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(payloads.len(), 4, "{payloads:?}");
    for state in ["announced", "active", "replaced", "destroyed"] {
        let state = format!("\"state\":\"{state}\"");
        let count = payloads.iter().filter(|it| it.contains(&state)).count();
        assert_eq!(count, 1, "{state}: {payloads:?}");
    }
}

/// A pair says that two fingerprints are of one value. SQL cannot make a search return the tokens of another one.
#[tokio::test]
async fn pairs_of_fingerprints_are_authentic() {
    let (fixture, tokens) = fixture(2).await;
    fixture.start_of(KeyPurpose::Fingerprint).await;
    fixture.advance_to(Phase::Proved).await;
    let by_old = async |token: &Value| {
        let fingerprint = token["fingerprint"].as_str().unwrap();
        search(&fixture.client, format!("fingerprint:{fingerprint}")).await
    };
    let id = |token: &Value| BTreeSet::from([token["id"].as_str().unwrap().to_owned()]);
    assert_eq!(by_old(&tokens[0]).await, id(&tokens[0]));

    fixture
        .execute(
            "update fingerprint_pair set other = swapped.other, mac = swapped.mac
            from fingerprint_pair swapped
            where fingerprint_pair.fingerprint < swapped.fingerprint
               or fingerprint_pair.fingerprint > swapped.fingerprint",
        )
        .await;

    for token in &tokens {
        assert_eq!(by_old(token).await, BTreeSet::new());
    }
}

/// A token that is deleted or changed while the key is replaced leaves a claim under the other version.
#[tokio::test]
async fn claims_of_deleted_and_changed_tokens_do_not_block_others() {
    let (fixture, _) = fixture(1).await;
    let client = &fixture.client;
    fixture.start_of(KeyPurpose::Fingerprint).await;
    fixture.advance_to(Phase::Promoted).await;
    for value in ["deleted", "changed"] {
        let created = client.post("/tokens", unique(value)).await;
        let path = format!("/tokens/{}", created.id());
        let released = match value {
            "deleted" => client.delete(&path).await,
            _ => client.patch(&path, json!({"data": "other"})).await,
        };
        assert!(released.status.is_success(), "{}", released.body);

        let again = client.post("/tokens", unique(value)).await;

        assert_eq!(again.status, 201, "{value}: {}", again.body);
        assert_ne!(again.id(), created.id());
    }
    fixture.advance_to(Phase::Proved).await;
    let stale = "select count(*) from claim where not exists (
        select from token where token.token_id = claim.token_id and token.fingerprint = claim.fingerprint)";
    let stale: i64 = fixture.database.query_one(stale, &[]).await.unwrap().get(0);
    assert_eq!(stale, 0);
}

/// The velocity limit leaves cards without a fingerprint; a new key gives them none.
#[tokio::test]
async fn what_has_no_fingerprint_gets_none_from_a_new_key() {
    let fixture = Fixture::create(1).await;
    let all = (0..10_000).map(|middle| format!("41472024{middle:04}1053"));
    for number in all.filter(|number| passes_luhn(number)).take(12) {
        for path in ["/tokens", "/token-intents"] {
            let new = json!({"type": "card", "data": {"number": number}});
            let created = fixture.client.post(path, new).await;
            assert_eq!(created.status, 201, "{}", created.body);
        }
    }
    let counted = "select (select count(fingerprint) from token),
        (select count(fingerprint) from token_intent)";
    let count = async || {
        let row = fixture.database.query_one(counted, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let before = count().await;

    fixture.start_of(KeyPurpose::Fingerprint).await;
    fixture.advance_to(Phase::Proved).await;
    fixture.retire_of(KeyPurpose::Fingerprint).await;

    // Ten of each, a token and the card and the intent of the fixture.
    assert_eq!((before, count().await), ((12, 11), (12, 11)));
}
