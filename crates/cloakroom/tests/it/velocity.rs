//! Guessing at cards: stopped by every way that a card number can be tried, and nobody else is.

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::config::Secret;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Answer, Chance, Client, Holder, Lines, TestDatabase, TestRedis, TestVault, encrypt, everything,
    grants, rule,
};

/// What a token shows of the card that is looked for.
const BIN: &str = "42424242";
const LAST4: &str = "4242";
const ALLOWED: usize = 10;

fn passes_luhn(number: &str) -> bool {
    let digits = number.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let values = digits
        .enumerate()
        .map(|(position, digit)| match position % 2 {
            0 => digit,
            _ => digit / 5 + digit * 2 % 10,
        });
    values.sum::<u32>() % 10 == 0
}

/// Every card number with these eight first and four last digits: a thousand.
fn candidates() -> Vec<String> {
    let all = (0..10_000).map(|middle| format!("{BIN}{middle:04}{LAST4}"));
    let candidates: Vec<String> = all.filter(|number| passes_luhn(number)).collect();
    assert_eq!(candidates.len(), 1_000);
    candidates
}

/// Some of the hundred thousand that share six digits instead, none of which share eight.
fn candidates_behind_six_digits() -> Vec<String> {
    let all = (0..100).map(|middle| format!("424242{middle:02}00004242"));
    let right = all.map(|number| {
        let fits =
            |digit: &u32| passes_luhn(&number.replacen("00004242", &format!("000{digit}4242"), 1));
        let digit = (0..10).find(fits).unwrap();
        number.replacen("00004242", &format!("000{digit}4242"), 1)
    });
    right.collect()
}

async fn start(redis: Option<&TestRedis>) -> TestVault {
    TestVault::start_with(TestDatabase::create().await, |config| {
        config.redis.url = redis.map(|redis| Secret::new(redis.url()));
    })
    .await
}

/// Someone with every right that an application of this kind may have with tokens.
async fn holder(vault: &TestVault, tenant: &Tenant, kind: ApplicationKind) -> Holder {
    use Permission::{TokenCreate, TokenIntentCreate, TokenUpdate};
    let granted = match kind {
        ApplicationKind::Public => grants(&[TokenCreate, TokenIntentCreate, TokenUpdate]),
        _ => {
            let mut granted = everything(Transform::Mask);
            granted.permissions = grants(&[TokenIntentCreate]).permissions;
            granted
        }
    };
    vault.holder(tenant, kind, granted).await
}

async fn attacker(vault: &TestVault, kind: ApplicationKind) -> Client {
    let tenant = vault.tenant().await;
    let holder = holder(vault, &tenant, kind).await;
    vault.client_with(Some(&holder.key))
}

fn card(number: &str) -> Value {
    json!({"type": "card", "data": {"number": number}})
}

/// Whether a number got through; anything but that and the one refusal fails the test.
fn got_through(answer: &Answer) -> bool {
    if answer.status.is_success() {
        return true;
    }
    assert_eq!(
        answer.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        answer.body
    );
    assert_eq!(answer.body["code"], "velocity_exceeded");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{wait}");
    false
}

/// Tries numbers at the clients in turn; tells how many got through.
async fn attack(clients: &[Client], numbers: &[String]) -> usize {
    let mut through = 0;
    for (number, client) in numbers.iter().zip(clients.iter().cycle()) {
        through += usize::from(got_through(&client.post("/tokens", card(number)).await));
    }
    through
}

/// Covers 23.1.
#[tokio::test]
async fn of_a_thousand_candidates_ten_are_tried() {
    for kind in [ApplicationKind::Public, ApplicationKind::Private] {
        let vault = start(None).await;
        let client = attacker(&vault, kind).await;

        let through = attack(&[client], &candidates()).await;

        assert_eq!(through, ALLOWED, "{kind}");
        let database = vault.database.connect().await;
        let count = database.query_one("select count(*) from token", &[]).await;
        assert_eq!(count.unwrap().get::<_, i64>(0), 10, "{kind}");
    }
}

#[tokio::test]
async fn two_nodes_that_share_redis_count_together() {
    for kind in [ApplicationKind::Public, ApplicationKind::Private] {
        let redis = TestRedis::start(&[]).await;
        let first = start(Some(&redis)).await;
        let second = first.second_node().await;
        let client = attacker(&first, kind).await;
        let clients = [client.clone(), client.at(&second.base_url)];

        let through = attack(&clients, &candidates()).await;

        assert_eq!(through, ALLOWED, "{kind}");
    }
}

#[tokio::test]
async fn without_redis_each_node_counts_on_with_what_it_knows() {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_are_tried_at_once_ten_are() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let first = start(redis).await;
        let second = first.second_node().await;
        let client = attacker(&first, ApplicationKind::Private).await;
        let other = match redis {
            Some(_) => client.at(&second.base_url),
            None => client.clone(),
        };

        let mut trying = tokio::task::JoinSet::new();
        let clients = [client, other].into_iter().cycle();
        for (number, client) in candidates().into_iter().zip(clients).take(100) {
            trying.spawn(async move { client.post("/tokens", card(&number)).await });
        }
        let answers = trying.join_all().await;

        let through = answers.iter().filter(|answer| got_through(answer)).count();
        assert_eq!((answers.len(), through), (100, ALLOWED));
    }
}

#[tokio::test]
async fn a_hundred_thousand_candidates_behind_six_digits_are_one_group() {
    let vault = start(None).await;
    let client = attacker(&vault, ApplicationKind::Private).await;

    let through = attack(&[client], &candidates_behind_six_digits()).await;

    assert_eq!(through, ALLOWED);
}

/// A request that tries a number.
struct Try {
    method: Method,
    path: String,
    body: Value,
}

impl Try {
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

    async fn send(self, client: &Client) -> Answer {
        match self.method {
            Method::PATCH => client.patch(&self.path, self.body).await,
            _ => client.post(&self.path, self.body).await,
        }
    }
}

/// What an attacker prepares: a token to change, one with an expression, and a key to encrypt to.
struct Prepared {
    id: String,
    other: String,
    key: Value,
}

/// How many ways to try a number we know of.
const WAYS: usize = 19;

/// One of the ways to try a number, and its name.
fn way(way: usize, prepared: &Prepared, number: &str) -> (&'static str, Try) {
    let unrelated = "5555555555554444";
    let (start, end) = number.split_at(8);
    let one_more = json!({"number": unrelated, "guess": number});
    let halves = json!({"number": unrelated, "a": start, "b": end});
    let sealed = encrypt(&prepared.key, &json!({"number": number}).to_string());
    let query = json!({"query": format!("data:{number}")});
    let expression = "{{ metadata.a }}{{ metadata.b }}";
    let split = json!({"fingerprint_expression": expression, "metadata": {"a": start, "b": end}});
    let token = |kind: &str, data: Value| Try::post("/tokens", json!({"type": kind, "data": data}));
    let intent =
        |kind: &str, data: Value| Try::post("/token-intents", json!({"type": kind, "data": data}));
    let digested = |data: &Value, text: &str| {
        let body = json!({"type": "card", "data": data, "fingerprint_expression": text});
        Try::post("/tokens", body)
    };
    let mut deduplicated = card(number);
    deduplicated["deduplicate_token"] = json!(true);
    #[rustfmt::skip]
    let mut ways: [(&'static str, Try); WAYS] = [
        ("card", token("card", json!({"number": number}))),
        ("card number", token("card_number", json!(number))),
        ("network token", token("network_token", json!({"number": number}))),
        ("deduplicated", Try::post("/tokens", deduplicated)),
        ("encrypted", Try::post("/tokens", json!({"type": "card", "encrypted": sealed}))),
        ("token", token("token", json!(number))),
        ("member of a token", token("token", json!({"pan": number}))),
        ("other member", digested(&one_more, "{{ data.guess }}")),
        ("halves", digested(&halves, "{{ data.a }}{{ data.b }}")),
        ("hidden", digested(&one_more, "{{ data.guess | base64_encode }}")),
        ("tokenized card", Try::post("/tokenize", json!({"a": [card(number)]}))),
        ("tokenized value", Try::post("/tokenize", json!({"a": [number]}))),
        ("intent", intent("card", json!({"number": number}))),
        ("intent of a number", intent("card_number", json!(number))),
        ("intent of a token", intent("token", json!([number]))),
        ("patch", Try::patch(&prepared.id, json!({"data": {"number": number}}))),
        ("patched metadata", Try::patch(&prepared.other, split)),
        ("search", Try::post("/v2/tokens/search", query.clone())),
        ("older search", Try::post("/tokens/search", query)),
    ];
    ways.swap(0, way);
    let [chosen, ..] = ways;
    chosen
}

async fn prepare(vault: &TestVault, tenant: &Tenant, client: &Client) -> Prepared {
    let granted = grants(&[Permission::KeysCreate]);
    let manager = vault
        .holder(tenant, ApplicationKind::Management, granted)
        .await;
    let manager = vault.client_with(Some(&manager.key));
    Prepared {
        id: client.post("/tokens", card("5555555555554444")).await.id(),
        other: client.post("/tokens", card("378282246310005")).await.id(),
        key: manager.post("/keys", json!({})).await.body,
    }
}

/// Covers 23.2.
#[tokio::test]
async fn every_way_to_try_a_number_is_stopped() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let numbers = &candidates()[..30];

    for number_of_way in 0..WAYS {
        let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
        let client = vault.client_with(Some(&holder.key));
        let prepared = prepare(&vault, &tenant, &client).await;
        let (mut through, mut name) = (0, "");
        for number in numbers {
            let (called, tried) = way(number_of_way, &prepared, number);
            name = called;
            through += usize::from(got_through(&tried.send(&client).await));
        }

        assert_eq!(through, ALLOWED, "{name}");
    }
}

#[tokio::test]
async fn all_ways_count_together_and_what_was_tried_may_be_tried_again() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let prepared = prepare(&vault, &tenant, &client).await;
    let numbers = candidates();

    for (chosen, number) in (0..WAYS).zip(&numbers).take(ALLOWED) {
        let (name, tried) = way(chosen, &prepared, number);
        assert!(got_through(&tried.send(&client).await), "{name}");
    }
    for chosen in 0..WAYS {
        let (name, tried) = way(chosen, &prepared, &numbers[500]);
        assert!(!got_through(&tried.send(&client).await), "{name}");
        let (name, again) = way(chosen, &prepared, &numbers[chosen % ALLOWED]);
        assert!(got_through(&again.send(&client).await), "{name}");
    }
}

/// Covers 23.3.
#[tokio::test]
async fn eleven_in_one_document_are_refused_together_and_none_is_counted() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let quota = cloakroom::tenants::Changes {
        quotas: vec![("tokenize_limit".to_owned(), json!(20))],
        ..Default::default()
    };
    cloakroom::tenants::update_by_command(&vault.vault, tenant.id, &quota)
        .await
        .unwrap();
    let numbers = candidates();
    let document = |numbers: &[String]| -> Value { numbers.iter().map(|n| card(n)).collect() };

    let eleven = client.post("/tokenize", document(&numbers[..11])).await;
    let ten = client.post("/tokenize", document(&numbers[..10])).await;

    assert!(!got_through(&eleven));
    assert!(got_through(&ten), "{}", ten.body);
}

/// Covers 23.4.
#[tokio::test]
async fn applications_tenants_and_quotas_count_by_themselves() {
    let vault = start(None).await;
    let (one, other) = (vault.tenant().await, vault.tenant().await);
    let changes = cloakroom::tenants::Changes {
        quotas: vec![("card_velocity_limit".to_owned(), json!(3))],
        ..Default::default()
    };
    cloakroom::tenants::update_by_command(&vault.vault, other.id, &changes)
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
async fn a_shop_is_never_refused() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;
    let mut chance = Chance::new();

    for round in 0..300 {
        let bin = ["424242", "400012", "510510", "222300"][round % 4];
        let middle = chance.below(1_000_000_000);
        let fits = |digit: &usize| passes_luhn(&format!("{bin}{middle:09}{digit}"));
        let digit = (0..10).find(fits).unwrap();
        let number = format!("{bin}{middle:09}{digit}");
        for _ in 0..2 {
            let answer = client.post("/tokens", card(&number)).await;
            assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        }
    }
    for _ in 0..50 {
        let answer = client.post("/tokens", card("4242424242424242")).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    }
}

/// Makes everything that Redis counted an hour older.
const AGE: &str = "for _, set in ipairs(redis.call('KEYS', '*velocity:*')) do \
    for _, member in ipairs(redis.call('ZRANGE', set, 0, -1)) do \
    redis.call('ZINCRBY', set, -ARGV[1], member) end end";

#[tokio::test]
async fn numbers_count_for_an_hour() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;
    let numbers = candidates();

    let first = attack(std::slice::from_ref(&client), &numbers[..20]).await;
    redis.script(AGE, "3590000").await;
    let almost = attack(std::slice::from_ref(&client), &numbers[20..30]).await;
    redis.script(AGE, "10000").await;
    let after = attack(&[client], &numbers[30..60]).await;

    assert_eq!((first, almost, after), (ALLOWED, 0, ALLOWED));
}

#[tokio::test]
async fn redis_learns_no_digit_and_is_asked_only_about_card_numbers() {
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Public).await;
    let client = vault.client_with(Some(&holder.key));
    let number = "4000056655665556";

    let created = client.post("/tokens", card(number)).await;
    let asked = redis.calls_of("evalsha").await;
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});
    let bank = client
        .post("/tokens", json!({"type": "bank", "data": bank}))
        .await;
    let note = client
        .post("/tokens", json!({"type": "token", "data": "a note"}))
        .await;
    let path = format!("/tokens/{}", created.id());
    let patched = client
        .patch(&path, json!({"metadata": {"order": "1"}}))
        .await;

    for answer in [&created, &bank, &note, &patched] {
        assert!(answer.status.is_success(), "{}", answer.body);
    }
    assert_eq!((asked, redis.calls_of("evalsha").await), (1, 1));
    let names = redis.keys().await;
    assert_eq!(names.len(), 1, "{names:?}");
    let (_, group) = names[0].rsplit_once(':').unwrap();
    let mut kept = redis.members(&names[0]).await;
    assert_eq!((group.len(), kept.len()), (32, 1), "{names:?}");
    kept.push(hex::decode(group).unwrap());
    // As text, and two digits to a byte.
    for bytes in kept {
        for text in [String::from_utf8_lossy(&bytes).into(), hex::encode(&bytes)] {
            let digits = ["400005", "665566", "665556"];
            assert!(!digits.iter().any(|part| text.contains(part)), "{text}");
        }
    }
    assert!((1..=3_600_000).contains(&redis.left_ms(&names[0]).await));

    let another = client.post("/tokens", card("4242424242424242")).await;
    assert!(another.status.is_success(), "{}", another.body);
    let calls = (
        redis.calls_of("evalsha").await,
        redis.calls_of("eval").await,
    );
    // The script's text is sent once: its digest is the one that Redis computes.
    assert_eq!(calls, (2, 1));
}

/// Card numbers that agree in nothing are no guesses, and cost Redis less than a question each.
#[tokio::test(flavor = "multi_thread")]
async fn creates_that_come_together_are_asked_about_together() {
    const CREATES: usize = 200;
    let redis = TestRedis::start(&[]).await;
    let vault = start(Some(&redis)).await;
    let client = attacker(&vault, ApplicationKind::Private).await;

    let mut creating = tokio::task::JoinSet::new();
    for bin in 0..CREATES {
        let all = (0..10).map(|digit| format!("4{bin:05}000000000{digit}"));
        let number = all.into_iter().find(|number| passes_luhn(number)).unwrap();
        let client = client.clone();
        creating.spawn(async move { client.post("/tokens", card(&number)).await });
    }
    for created in creating.join_all().await {
        assert!(created.status.is_success(), "{}", created.body);
    }

    let asked = redis.calls_of("evalsha").await;
    assert!((1..CREATES as u32 / 2).contains(&asked), "{asked}");
    assert_eq!(redis.keys().await.len(), CREATES);
}

/// Covers 23.6.
#[tokio::test]
async fn a_refusal_is_recorded_and_told_without_a_digit() {
    let lines = Lines::capture();
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
    let client = vault.client_with(Some(&holder.key));
    let logs = grants(&[Permission::LogRead]);
    let logs = vault
        .holder(&tenant, ApplicationKind::Management, logs)
        .await;
    let logs = vault.client_with(Some(&logs.key));

    let through = attack(&[client], &candidates()[..12]).await;
    vault.vault.audit.flush().await.unwrap();
    let listed = logs.get("/logs?entity_type=application_key&size=100").await;

    assert_eq!(through, ALLOWED);
    let refusals: Vec<&Value> = listed
        .items()
        .iter()
        .filter(|record| record["operation"] == "refuse")
        .collect();
    assert_eq!(refusals.len(), 2, "{}", listed.body);
    assert_eq!(refusals[0]["entity_id"], holder.key_id.to_string());
    assert_eq!(refusals[0]["actor_id"], holder.application.to_string());
    let message = "Application key refused for too many card numbers";
    assert_eq!(refusals[0]["message"], message);
    assert_eq!(lines.count("a key tries too many card numbers"), 2);
    assert!(!lines.text().contains(BIN), "{}", lines.text());
}

/// A number that is none: 16 digits that fail the check.
const WRONG: &str = "4242424242424241";

/// Sends numbers that are none until one is not only called so; tells how many were.
async fn mistakes(clients: &[Client], count: usize) -> usize {
    let mut forgiven = 0;
    for client in clients.iter().cycle().take(count) {
        let answer = client.post("/tokens", card(WRONG)).await;
        match answer.status {
            StatusCode::BAD_REQUEST => forgiven += 1,
            _ => assert!(!got_through(&answer)),
        }
    }
    forgiven
}

/// Covers 23.5.
#[tokio::test]
async fn public_keys_that_make_numbers_up_send_none_for_ten_minutes() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let first = start(redis).await;
        let client = attacker(&first, ApplicationKind::Public).await;
        let second = first.second_node().await;
        let nodes = match redis {
            Some(_) => vec![client.clone(), client.at(&second.base_url)],
            None => vec![client.clone()],
        };

        let forgiven = mistakes(&nodes, 40).await;
        let valid = client.post("/tokens", card("4242424242424242")).await;
        let intent = client
            .post("/token-intents", card("4242424242424242"))
            .await;
        let note = client
            .post("/tokens", json!({"type": "token", "data": "a note"}))
            .await;
        let another = attacker(&first, ApplicationKind::Public).await;
        let another = another.post("/tokens", card("4242424242424242")).await;

        assert_eq!(forgiven, 10);
        assert!(!got_through(&valid) && !got_through(&intent));
        let wait: u64 = valid.header("retry-after").parse().unwrap();
        assert!((590..=600).contains(&wait), "{wait}");
        assert_eq!(note.status, StatusCode::CREATED);
        assert_eq!(another.status, StatusCode::CREATED, "{}", another.body);
    }
}

/// Covers 23.5.
#[tokio::test]
async fn servers_and_other_mistakes_are_not_counted() {
    let vault = start(None).await;
    let server = attacker(&vault, ApplicationKind::Private).await;
    let browser = attacker(&vault, ApplicationKind::Public).await;

    assert_eq!(mistakes(&[server], 30).await, 30);
    for _ in 0..30 {
        let bad = [
            json!({"type": "card", "data": {"number": "4242424242424242", "cvc": "1"}}),
            json!({"type": "card", "data": {}}),
            json!({"type": "card_number", "data": null}),
            json!({"type": "network_token", "data": {"number": "1"}}),
        ];
        for body in bad {
            let answer = browser.post("/tokens", body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.body);
        }
    }
    let valid = browser.post("/tokens", card("4242424242424242")).await;
    assert_eq!(valid.status, StatusCode::CREATED, "{}", valid.body);
}

#[tokio::test]
async fn mistakes_count_by_every_way_and_each_of_a_document() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let granted = || {
        use Permission::{TokenCreate, TokenIntentCreate, TokenUpdate};
        let mut granted = grants(&[TokenIntentCreate]);
        granted.rules = vec![rule(1, "/", Transform::Mask, &[TokenCreate, TokenUpdate])];
        granted
    };
    let document =
        json!([card(WRONG), card(WRONG), card(WRONG), {"type": "card_number", "data": "1"}]);
    for (method, path, body, forgiven) in [
        (Method::POST, "/token-intents", card(WRONG), 10),
        (Method::POST, "/tokenize", document, 2),
        (Method::PATCH, "", json!({"data": {"number": WRONG}}), 10),
    ] {
        let holder = vault
            .holder(&tenant, ApplicationKind::Public, granted())
            .await;
        let client = vault.client_with(Some(&holder.key));
        let id = client.post("/tokens", card("5555555555554444")).await.id();
        for attempt in 0..12 {
            let answer = match method {
                Method::PATCH => client.patch(&format!("/tokens/{id}"), body.clone()).await,
                _ => client.post(path, body.clone()).await,
            };
            let expected = match attempt < forgiven {
                true => StatusCode::BAD_REQUEST,
                false => StatusCode::TOO_MANY_REQUESTS,
            };
            assert_eq!(answer.status, expected, "{method} {path} {attempt}");
        }
    }
}
