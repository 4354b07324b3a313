//! The limit and how it is counted.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{
    Client, LogCapture, SeededRng, TestRedis, TestResponse, grants, passes_luhn,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{ALLOWED, BIN, FORGET, attacker, candidates, card, holder, is_compared, start};

/// A sample of the hundred thousand valid numbers that share six digits; no two share eight.
fn six_digit_candidates() -> Vec<String> {
    let all = (0..100).map(|middle| format!("424242{middle:02}00004242"));
    let valid = all.map(|number| {
        let is_valid =
            |digit: &u32| passes_luhn(&number.replacen("00004242", &format!("000{digit}4242"), 1));
        let digit = (0..10).find(is_valid).unwrap();
        number.replacen("00004242", &format!("000{digit}4242"), 1)
    });
    valid.collect()
}

/// Submits numbers through the clients in turn and returns how many were compared.
async fn attack(clients: &[Client], numbers: &[String]) -> usize {
    let mut accepted = 0;
    for (number, client) in numbers.iter().zip(clients.iter().cycle()) {
        let created = client.post("/tokens", card(number)).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        accepted += usize::from(is_compared(&created));
    }
    accepted
}

/// Covers 23.1.
#[tokio::test]
async fn ten_of_a_thousand_candidates_are_compared() {
    for kind in [ApplicationKind::Public, ApplicationKind::Private] {
        let vault = start(None).await;
        let client = attacker(&vault, kind).await;

        let accepted = attack(&[client], &candidates()).await;

        assert_eq!(accepted, ALLOWED, "{kind}");
        let database = vault.database.connect().await;
        let counted = "select count(*), count(fingerprint) from token";
        let counts = database.query_one(counted, &[]).await.unwrap();
        let counts: (i64, i64) = (counts.get(0), counts.get(1));
        assert_eq!(counts, (1_000, 10), "{kind}");
    }
}

#[tokio::test]
async fn nodes_that_share_redis_share_counts() {
    for kind in [ApplicationKind::Public, ApplicationKind::Private] {
        let redis = TestRedis::start(&[]).await;
        let first = start(Some(&redis)).await;
        let second = first.second_node().await;
        let client = attacker(&first, kind).await;
        let clients = [client.clone(), client.at(&second.base_url)];

        let accepted = attack(&clients, &candidates()).await;

        assert_eq!(accepted, ALLOWED, "{kind}");
    }
}

#[tokio::test]
async fn without_redis_each_node_continues_from_its_own_counts() {
    let redis = TestRedis::start(&[]).await;
    let first = start(Some(&redis)).await;
    let client = attacker(&first, ApplicationKind::Private).await;
    let candidates = candidates();

    let before = attack(std::slice::from_ref(&client), &candidates[..6]).await;
    redis.kill().await;
    let after = attack(&[client], &candidates[6..]).await;

    assert_eq!((before, after), (6, 4));
    let second = first.second_node().await;
    let client = attacker(&second, ApplicationKind::Public).await;
    assert_eq!(attack(&[client], &candidates).await, ALLOWED);
}

#[tokio::test]
async fn deleted_counters_in_redis_admit_no_further_number() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;

    let mut accepted = 0;
    for numbers in candidates()[..60].chunks(6) {
        accepted += attack(std::slice::from_ref(&client), numbers).await;
        redis.script(FORGET, "").await;
    }

    assert_eq!(accepted, ALLOWED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_of_many_concurrent_candidates_are_compared() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let first = start(redis).await;
        let second = first.second_node().await;
        let client = attacker(&first, ApplicationKind::Private).await;
        let other = match redis {
            Some(_) => client.at(&second.base_url),
            None => client.clone(),
        };

        let mut requests = tokio::task::JoinSet::new();
        let clients = [client, other].into_iter().cycle();
        for (number, client) in candidates().into_iter().zip(clients).take(100) {
            requests.spawn(async move { client.post("/tokens", card(&number)).await });
        }
        let responses = requests.join_all().await;

        let accepted = responses
            .iter()
            .filter(|response| is_compared(response))
            .count();
        assert_eq!((responses.len(), accepted), (100, ALLOWED));
    }
}

#[tokio::test]
async fn candidates_that_share_six_digits_are_one_group() {
    let vault = start(None).await;
    let client = attacker(&vault, ApplicationKind::Private).await;

    let accepted = attack(&[client], &six_digit_candidates()).await;

    assert_eq!(accepted, ALLOWED);
}

/// Covers 23.3.
#[tokio::test]
async fn of_a_document_over_the_limit_nothing_is_compared() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let quota = cloakroom::tenants::TenantChanges {
        quotas: vec![("tokenize_limit".to_owned(), json!(20))],
        ..Default::default()
    };
    cloakroom::tenants::update_as_operator(&vault.vault, tenant.id, &quota)
        .await
        .unwrap();
    let numbers = candidates();
    let document = |numbers: &[String]| -> Value { numbers.iter().map(|n| card(n)).collect() };

    let nine = client.post("/tokenize", document(&numbers[..9])).await;
    let eleven = client.post("/tokenize", document(&numbers[..11])).await;

    let compared = |response: &TestResponse| {
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        let tokens = response.body.as_array().unwrap().iter();
        tokens
            .filter(|token| token["fingerprint"].is_string())
            .count()
    };
    assert_eq!((compared(&nine), compared(&eleven)), (9, 0));
}

/// Covers 23.4.
#[tokio::test]
async fn applications_and_tenants_are_counted_separately() {
    let vault = start(None).await;
    let (one, other) = (vault.tenant().await, vault.tenant().await);
    let changes = cloakroom::tenants::TenantChanges {
        quotas: vec![("card_velocity_limit".to_owned(), json!(3))],
        ..Default::default()
    };
    cloakroom::tenants::update_as_operator(&vault.vault, other.id, &changes)
        .await
        .unwrap();
    let candidates = candidates();
    let expected = [(&one, 10), (&one, 10), (&other, 3)];

    for ((tenant, allowed), numbers) in expected.into_iter().zip(candidates.chunks(20)) {
        let holder = holder(&vault, tenant, ApplicationKind::Private).await;
        let client = vault.client_with(Some(&holder.key));
        assert_eq!(attack(&[client], numbers).await, allowed);
    }
}

#[tokio::test]
async fn normal_traffic_is_never_rejected() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;
    let mut chance = SeededRng::from_environment();

    for round in 0..300 {
        let bin = ["424242", "400012", "510510", "222300"][round % 4];
        let middle = chance.below(1_000_000_000);
        let is_valid = |digit: &usize| passes_luhn(&format!("{bin}{middle:09}{digit}"));
        let digit = (0..10).find(is_valid).unwrap();
        let number = format!("{bin}{middle:09}{digit}");
        for _ in 0..2 {
            let response = client.post("/tokens", card(&number)).await;
            assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
        }
    }
    for _ in 0..50 {
        let response = client.post("/tokens", card("4242424242424242")).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    }
}

/// Moves all counts in Redis into the past, by the argument in milliseconds.
const AGE: &str = "for _, set in ipairs(redis.call('KEYS', '*velocity:cards:*')) do \
    for _, member in ipairs(redis.call('ZRANGE', set, 0, -1)) do \
    redis.call('ZINCRBY', set, -ARGV[1], member) end end";

#[tokio::test]
async fn numbers_are_counted_for_an_hour() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;
    let numbers = candidates();

    let first = attack(std::slice::from_ref(&client), &numbers[..20]).await;
    // A node without counts of its own.
    let second = vault.second_node().await;
    let client = client.at(&second.base_url);
    redis.script(AGE, "3590000").await;
    let almost = attack(std::slice::from_ref(&client), &numbers[20..30]).await;
    redis.script(AGE, "10000").await;
    let after = attack(&[client], &numbers[30..60]).await;

    assert_eq!((first, almost, after), (ALLOWED, 0, ALLOWED));
}

#[tokio::test]
async fn redis_stores_no_digits_and_is_called_only_for_card_numbers() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Public).await;
    let client = vault.client_with(Some(&holder.key));
    let number = "4000056655665556";

    let created = client.post("/tokens", card(number)).await;
    let (evalsha_calls, names) = (redis.calls_of("evalsha").await, redis.keys().await);
    let note = client
        .post("/tokens", json!({"type": "token", "data": "a note"}))
        .await;
    let path = format!("/tokens/{}", created.id());
    let patched = client
        .patch(&path, json!({"metadata": {"order": "1"}}))
        .await;

    for response in [&created, &note, &patched] {
        assert!(response.status.is_success(), "{}", response.body);
    }
    assert_eq!((evalsha_calls, redis.calls_of("evalsha").await), (1, 1));
    // One group, and the volume counters of the six-digit and the eight-digit BIN.
    assert_eq!(names.len(), 3, "{names:?}");
    let mut stored = Vec::new();
    for name in &names {
        let (rest, group) = name.rsplit_once(':').unwrap();
        assert_eq!(group.len(), 32, "{names:?}");
        stored.push(hex::decode(group).unwrap());
        if rest.ends_with("cards") {
            let members = redis.members(name).await;
            assert_eq!(members.len(), 1);
            stored.extend(members);
        }
        assert!((1..=4_200_000).contains(&redis.ttl_ms(name).await));
    }
    // As text, and with two digits per byte.
    for bytes in stored {
        for text in [String::from_utf8_lossy(&bytes).into(), hex::encode(&bytes)] {
            let digits = ["400005", "665566", "665556"];
            assert!(!digits.iter().any(|part| text.contains(part)), "{text}");
        }
    }

    let another = client.post("/tokens", card("4242424242424242")).await;
    assert!(another.status.is_success(), "{}", another.body);
    let calls = (
        redis.calls_of("evalsha").await,
        redis.calls_of("eval").await,
    );
    // The text of the script is sent once; its digest is the one that Redis computes.
    assert_eq!(calls, (2, 1));
}

/// Sets the volume of each BIN seen so far to the argument.
const TRAFFIC: &str = "local interval = math.floor(redis.call('TIME')[1] / 600) \
    for _, volume in ipairs(redis.call('KEYS', '*velocity:volume:*')) do \
    redis.call('HSET', volume, interval, ARGV[1]) end";

/// `allowance.rs` tests the limit of a single node; this is the one in Redis. No node admits more than ten by itself.
#[tokio::test]
async fn the_limit_grows_with_the_volume_of_the_bin() {
    for (volume, allowed) in [("7000", ALLOWED), ("72000", 28), ("720000", 33)] {
        let redis = TestRedis::start(&[]).await;
        let vault = start(Some(&redis)).await;
        let client = attacker(&vault, ApplicationKind::Private).await;
        let numbers = candidates();

        let nodes = [
            vault.second_node().await,
            vault.second_node().await,
            vault.second_node().await,
        ];
        let first = attack(std::slice::from_ref(&client), &numbers[..1]).await;
        redis.script(TRAFFIC, volume).await;
        let mut clients = vec![client.clone()];
        clients.extend(nodes.iter().map(|node| client.at(&node.base_url)));
        let others = attack(&clients, &numbers[1..60]).await;

        assert_eq!(first + others, allowed, "{volume}");
    }
}

/// Unrelated card numbers are not guesses, and are counted in batches that save Redis calls.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_are_counted_in_batches() {
    const CREATES: usize = 200;
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;

    let mut requests = tokio::task::JoinSet::new();
    for bin in 0..CREATES {
        let all = (0..10).map(|digit| format!("4{bin:05}000000000{digit}"));
        let number = all.into_iter().find(|number| passes_luhn(number)).unwrap();
        let client = client.clone();
        requests.spawn(async move { client.post("/tokens", card(&number)).await });
    }
    for created in requests.join_all().await {
        assert!(created.status.is_success(), "{}", created.body);
    }

    let evalsha_calls = redis.calls_of("evalsha").await;
    assert!(
        (1..CREATES as u32 / 2).contains(&evalsha_calls),
        "{evalsha_calls}"
    );
    let names = redis.keys().await;
    let groups = names.iter().filter(|name| name.contains(":cards:"));
    assert_eq!(groups.count(), CREATES);
}

/// Covers 23.6.
#[tokio::test]
async fn rejections_are_logged_without_digits() {
    let lines = LogCapture::start();
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let logs = grants(&[Permission::LogRead]);
    let logs = vault
        .holder(&tenant, ApplicationKind::Management, logs)
        .await;
    let logs = vault.client_with(Some(&logs.key));

    let accepted = attack(&[client], &candidates()[..12]).await;
    vault.vault.audit.flush().await.unwrap();
    let listed = logs.get("/logs?entity_type=application_key&size=100").await;

    assert_eq!(accepted, ALLOWED);
    let rejections: Vec<&Value> = listed
        .items()
        .iter()
        .filter(|record| record["operation"] == "reject")
        .collect();
    assert_eq!(rejections.len(), 2, "{}", listed.body);
    assert_eq!(rejections[0]["entity_id"], holder.key_id.to_string());
    assert_eq!(rejections[0]["actor_id"], holder.application.to_string());
    let message = "Application key rejected for too many card numbers";
    assert_eq!(rejections[0]["message"], message);
    assert_eq!(lines.count("a key tries too many card numbers"), 2);
    assert!(!lines.text().contains(BIN), "{}", lines.text());
}
