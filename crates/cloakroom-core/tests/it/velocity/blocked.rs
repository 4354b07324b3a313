//! Cards whose group somebody else has blocked.

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom_testkit::{Client, TestRedis, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{attacker, candidates, card, holder, start};

/// Moves the refusal of all groups into the past.
const FORGET: &str = "for _, set in ipairs(redis.call('KEYS', '*velocity:cards:*')) do \
    for _, member in ipairs(redis.call('ZRANGE', set, 0, -1)) do \
    redis.call('ZINCRBY', set, -ARGV[1], member) end end";

fn deduplicated(number: &str) -> Value {
    let mut card = card(number);
    card["deduplicate_token"] = json!(true);
    card["search_indexes"] = json!(["{{ data.number }}"]);
    card
}

/// Covers 23.1, 23.8, 23.9.
#[tokio::test]
async fn a_card_of_a_blocked_group_is_stored_and_compared_with_nothing() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let vault = start(redis).await;
        let tenant = vault.tenant().await;
        let public = holder(&vault, &tenant, ApplicationKind::Public).await;
        let public = vault.client_with(Some(&public.key));
        let numbers = candidates();
        let (victim, others) = numbers.split_last().unwrap();
        for number in &others[..11] {
            let intent = public.post("/token-intents", card(number)).await;
            assert_eq!(intent.status, StatusCode::CREATED, "{}", intent.body);
        }

        let first = public.post("/tokens", deduplicated(victim)).await;
        let second = public.post("/tokens", deduplicated(victim)).await;
        let intent = public.post("/token-intents", card(victim)).await;

        for created in [&first, &second, &intent] {
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
            assert_eq!(created.body.get("fingerprint"), None, "{}", created.body);
            assert_eq!(created.body.get("fingerprint_expression"), None);
        }
        assert_ne!(first.id(), second.id());
        assert_eq!(second.body["_extras"]["deduplicated"], false);
        // A search counts the number itself, for its own application.
        let server = holder(&vault, &tenant, ApplicationKind::Private).await;
        let server = vault.client_with(Some(&server.key));
        let query = json!({"query": format!("data:{victim}")});
        let found = server.post("/v2/tokens/search", query).await;
        assert_eq!(found.items().len(), 2, "{}", found.body);
        assert!(found.items().iter().all(|it| it["fingerprint"].is_null()));
    }
}

/// A private application with a card that has no fingerprint, and the card's path.
async fn blocked(vault: &TestVault) -> (Client, String) {
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let numbers = candidates();
    let mut path = String::new();
    for number in &numbers[..12] {
        path = format!(
            "/tokens/{}",
            client.post("/tokens", card(number)).await.id()
        );
    }
    (client, path)
}

/// Covers 23.9.
#[tokio::test]
async fn an_update_adds_a_fingerprint_only_within_the_limit() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let (client, path) = blocked(&vault).await;

    for patch in [
        json!({"metadata": {"order": "17"}}),
        json!({"data": {"expiration_month": 12, "expiration_year": 2040}}),
        json!({"deduplicate_token": true}),
        json!({"data": {"number": candidates()[0]}}),
    ] {
        let patched = client.patch(&path, patch.clone()).await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
        assert_eq!(patched.body.get("fingerprint"), None, "{patch}");
    }
    for expression in [json!(null), json!("{{ data.number }}")] {
        let patch = json!({"fingerprint_expression": expression});
        let rejected = client.patch(&path, patch).await;
        assert_eq!(rejected.body["code"], "velocity_exceeded", "{expression}");
    }
    redis.script(FORGET, "3600000").await;
    let patched = client
        .patch(&path, json!({"metadata": {"order": "18"}}))
        .await;

    assert!(patched.body["fingerprint"].is_string(), "{}", patched.body);
}

/// Updates of cards without a fingerprint count: otherwise many could be created while the group is blocked, and compared
/// later.
///
/// Covers 23.9.
#[tokio::test]
async fn updates_of_cards_without_a_fingerprint_count() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;
    let mut paths = Vec::new();
    for number in &candidates()[..40] {
        let created = client.post("/tokens", card(number)).await;
        paths.push(format!("/tokens/{}", created.id()));
    }
    redis.script(FORGET, "3600000").await;
    // A node also counts on its own.
    let second = vault.second_node().await;
    let client = client.at(&second.base_url);

    let mut compared = 0;
    for path in &paths[10..] {
        let patch = json!({"metadata": {"order": "17"}});
        let patched = client.patch(path, patch).await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
        compared += usize::from(patched.body["fingerprint"].is_string());
    }

    assert_eq!(compared, 10);
}

/// Whether an update keeps its fingerprint must not tell a caller that sees nothing which guess is the number.
#[tokio::test]
async fn a_guess_counts_whether_or_not_it_is_the_number() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let attacker = vault.client(&tenant, everything(Transform::Redact)).await;
    let numbers = candidates();
    let (number, others) = numbers.split_last().unwrap();
    let mut paths = Vec::new();
    for _ in 0..2 {
        let victim = owner.post("/tokens", card(number)).await;
        paths.push(format!("/tokens/{}", victim.id()));
    }
    for other in &others[..11] {
        attacker.post("/tokens", card(other)).await;
    }

    let mut fingerprints = Vec::new();
    for (path, guess) in paths.iter().zip([number, &others[12]]) {
        let patched = attacker
            .patch(path, json!({"data": {"number": guess}}))
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
        fingerprints.push(patched.body.get("fingerprint").cloned());
    }

    assert_eq!(fingerprints, [None, None]);
}
