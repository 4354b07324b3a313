//! Limits on the rate of requests: what clients see of them, across nodes, and without Redis.

mod nodes;
mod outage;
mod script;
mod site;
mod turnstile;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloakroom::access::ApplicationKind::{Management, Private, Public};
use cloakroom::admin::Readiness;
use cloakroom::config::Secret;
use cloakroom::doctor::{self, Verdict};
use cloakroom::tenants::{self, Changes};
use cloakroom::{Vault, jobs, rate_limits};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::site::{Site, limit};
use crate::support::{Answer, Client, TestRedis, TestVault};

const OK: StatusCode = StatusCode::OK;
const TOO_MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
/// Open to every key, and cheap.
const CHEAP: &str = "/roles";

async fn statuses(client: &Client, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(client.get(CHEAP).await.status.as_u16());
    }
    statuses
}

/// Asks through a proxy that forwards for this address.
async fn from_address(client: &Client, address: &str) -> Answer {
    let request = client.request(Method::GET, CHEAP);
    client
        .send(request.header("x-forwarded-for", address))
        .await
}

#[tokio::test]
async fn a_request_too_many_is_refused_and_told_when_to_come_back() {
    let table = limit(
        "few",
        "counter = \"key and ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;

    let admitted = [
        client.get(CHEAP).await,
        client.get(CHEAP).await,
        client.get(CHEAP).await,
    ];
    let refused = client.get(CHEAP).await;
    let elsewhere = site.first.second_node().await;
    let refused_elsewhere = client.at(&elsewhere.base_url).get(CHEAP).await;
    let another_key = site.client(Private).await.get(CHEAP).await;

    for (answer, left) in admitted.iter().zip(["2", "1", "0"]) {
        assert_eq!(answer.status, OK);
        assert_eq!(answer.header("x-ratelimit-limit"), "3");
        assert_eq!(answer.header("x-ratelimit-remaining"), left);
        assert_eq!(answer.header("ratelimit-policy"), "\"few\";q=3;w=60");
        assert!(
            answer
                .header("ratelimit")
                .starts_with(&format!("\"few\";r={left};t="))
        );
        // The official clients sleep until then on whatever they retry.
        assert_eq!(answer.header("x-ratelimit-reset"), "");
        assert_eq!(answer.header("retry-after"), "");
    }
    for answer in [&refused, &refused_elsewhere] {
        assert_eq!(answer.status, TOO_MANY);
        assert_eq!(answer.body["code"], "rate_limited");
        assert_eq!(answer.body["title"], "Too Many Requests");
        let detail = "The limit `few` allows 3 requests in 1m per key and address.";
        assert_eq!(answer.body["detail"], detail);
        let wait: i64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(
            (reset - now.as_secs().cast_signed() - wait).abs() <= 2,
            "{reset}"
        );
        assert_eq!(answer.header("x-ratelimit-remaining"), "0");
    }
    assert_eq!(another_key.status, OK);
}

#[tokio::test]
async fn a_refused_request_costs_one_question_and_then_none() {
    let table = limit(
        "few",
        "counter = \"key and ip\"; requests = 2; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;

    let found = statuses(&client, 6).await;
    let asked = site.redis().calls_of("evalsha").await;
    let told = site.redis().calls_of("eval").await;
    site.redis().run("SCRIPT FLUSH").await;
    let afterwards = statuses(&site.client(Private).await, 3).await;

    assert_eq!(found, [200, 200, 429, 429, 429, 429]);
    // The script's text is sent once: its digest is the one that Redis computes.
    assert_eq!((asked, told), (3, 1));
    assert_eq!(afterwards, [200, 200, 429]);
    assert_eq!(site.redis().calls_of("eval").await, 2);
}

#[tokio::test]
async fn limits_come_after_the_key_and_before_the_body() {
    let table = limit(
        "few",
        "counter = \"key\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;
    client.get(CHEAP).await;

    let malformed = client.post_text("/tokens", "{", "application/json").await;
    let unknown = client
        .with_key("key_test_us_pub_1111111111111111111111")
        .get(CHEAP)
        .await;

    assert_eq!(malformed.status, TOO_MANY);
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    let exposed = client
        .send(
            client
                .request(Method::GET, CHEAP)
                .header("origin", "https://shop"),
        )
        .await;
    let exposed = exposed.header("access-control-expose-headers").to_owned();
    for name in [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit-policy",
        "retry-after",
    ] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
}

#[tokio::test]
async fn guesses_at_keys_are_counted_by_address_and_block_it_before_the_look_up() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 4; window = \"1m\"; action = \"block 1m\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;
    let guess = client.with_key("key_test_us_pub_1111111111111111111111");

    let open = client.get("/ping").await.status;
    let nowhere = client.get("/nowhere").await.status;
    let guesses = statuses(&guess, 3).await;
    let asked = site.redis().calls_of("evalsha").await;
    let blocked = [
        client.get(CHEAP).await.status,
        client.get("/ping").await.status,
    ];

    assert_eq!((open, nowhere), (OK, StatusCode::NOT_FOUND));
    assert_eq!(guesses, [401, 401, 429]);
    assert_eq!(blocked, [TOO_MANY; 2]);
    assert_eq!(site.redis().calls_of("evalsha").await, asked);
}

/// Without Redis as well: the look-up would take long here.
#[tokio::test]
async fn a_node_by_itself_blocks_guesses_before_the_look_up() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 2; window = \"1m\"; action = \"block 1m\"",
    );
    let site = Site::start(&table, None, |_| {}).await;
    let guess = site.client(Private).await;
    let guess = guess.with_key("key_test_us_pub_1111111111111111111111");
    let guesses = statuses(&guess, 3).await;
    let database = site.first.database.connect().await;
    let held = "begin; lock table application_key in access exclusive mode";
    database.batch_execute(held).await.unwrap();

    let blocked = tokio::time::timeout(Duration::from_secs(2), statuses(&guess, 1)).await;

    assert_eq!((guesses, blocked), (vec![401, 401, 429], Ok(vec![429])));
}

/// Leaving before the answer is no way around being counted.
#[tokio::test]
async fn who_leaves_before_the_answer_is_counted() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;
    let guess = client.with_key("key_test_us_pub_1111111111111111111111");
    let blocker = site.first.database.connect().await;
    let held = "begin; lock table application_key in access exclusive mode";
    blocker.batch_execute(held).await.unwrap();
    for _ in 0..3 {
        let left = tokio::time::timeout(Duration::from_millis(200), guess.get(CHEAP)).await;
        assert!(left.is_err());
    }
    blocker.batch_execute("commit").await.unwrap();

    // Whoever left is counted soon after.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while site.redis().calls_of("evalsha").await < 3 {
        assert!(tokio::time::Instant::now() < deadline, "nobody was counted");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.get(CHEAP).await.status, TOO_MANY);
}

/// Times that lie ahead were written before the clock was set back.
#[tokio::test]
async fn a_clock_of_redis_that_is_set_back_locks_nobody_out() {
    let table = limit(
        "few",
        "counter = \"ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;
    client.get(CHEAP).await;
    let counter = site.redis().keys().await;
    let counter = counter.iter().find(|key| key.contains(":limit:")).unwrap();
    let ahead = "redis.call('DEL', ARGV[1])
        for _ = 1, 5 do
            local later = string.format('%.0f000000', redis.call('TIME')[1] + 21600)
            redis.call('RPUSH', ARGV[1], later .. ':0:5')
        end";
    site.redis().script(ahead, counter).await;

    assert_eq!(statuses(&client, 4).await, [200, 200, 200, 429]);
}

#[tokio::test]
async fn key_or_address_are_two_counters_and_a_refused_request_uses_up_neither() {
    let table = limit(
        "private",
        "application = \"private\"; counter = \"key or ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::start(&table, Some(TestRedis::start(&[]).await), |config| {
        config.http.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let (one, two) = (site.client(Private).await, site.client(Private).await);
    let public = site.client(Public).await;

    let mut found = Vec::new();
    for (client, address) in [
        (&one, "192.0.2.1"),
        (&two, "192.0.2.1"),
        (&two, "192.0.2.1"),
        // The address is used up, and then the second key.
        (&one, "192.0.2.1"),
        (&two, "192.0.2.2"),
        (&two, "192.0.2.2"),
        // What was refused above was counted nowhere: the first key has two left.
        (&one, "192.0.2.3"),
        (&one, "192.0.2.3"),
        (&one, "192.0.2.3"),
        (&public, "192.0.2.1"),
    ] {
        found.push(from_address(client, address).await.status.as_u16());
    }

    assert_eq!(found, [200, 200, 200, 429, 200, 429, 200, 200, 429, 200]);
}

#[tokio::test]
async fn a_key_alone_is_blocked_wherever_it_asks_from() {
    let table = limit(
        "management",
        "application = \"management\"; counter = \"key\"; requests = 2; window = \"500ms\"; action = \"block 2s\"",
    );
    let site = Site::start(&table, Some(TestRedis::start(&[]).await), |config| {
        config.http.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let client = site.client(Management).await;

    let mut found = Vec::new();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        found.push(from_address(&client, address).await.status.as_u16());
    }
    sleep(Duration::from_millis(1_000)).await;
    let still_blocked = client.get(CHEAP).await;
    sleep(Duration::from_millis(1_100)).await;
    let free_again = client.get(CHEAP).await.status;

    assert_eq!(found, [200, 200, 429]);
    assert_eq!(still_blocked.status, TOO_MANY);
    assert_eq!(still_blocked.header("retry-after"), "1");
    assert_eq!(free_again, OK);
}

#[tokio::test]
async fn nobody_but_a_trusted_proxy_says_where_a_request_comes_from() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 2; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;

    let mut found = Vec::new();
    for address in ["192.0.2.1", "192.0.2.2", "10.0.0.1, 127.0.0.1"] {
        found.push(from_address(&client, address).await.status.as_u16());
    }

    assert_eq!(found, [200, 200, 429]);
    let names = site.redis().keys().await;
    assert_eq!(names, ["cloakroom:test:limit:everything:ip=127.0.0.1"]);
}

#[tokio::test]
async fn exempt_addresses_are_not_counted_alone() {
    let by_address = limit(
        "everything",
        "counter = \"ip\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let by_key = limit(
        "keys",
        "counter = \"key\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let redis = TestRedis::start(&[]).await;
    let site = Site::start(&(by_address + &by_key), Some(redis), |config| {
        config.limits.exempt_addresses = "127.0.0.0/8".parse().unwrap();
    })
    .await;

    assert_eq!(
        statuses(&site.client(Private).await, 4).await,
        [200, 200, 200, 429]
    );
}

#[tokio::test]
async fn a_tenant_may_have_so_many_times_the_limit_or_none() {
    let table = limit(
        "few",
        "tenant = \"test\"; counter = \"key and ip\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    for (quota, expected) in [("3x", [200, 200, 200, 429]), ("unlimited", [200; 4])] {
        let changes = Changes {
            quotas: vec![("rate_limit".to_owned(), json!(quota))],
            ..Changes::default()
        };
        tenants::update_by_command(&site.first.vault, site.tenant.id, &changes)
            .await
            .unwrap();
        let client = site.client(Private).await;

        assert_eq!(statuses(&client, 4).await, expected, "{quota}");
    }
}

#[tokio::test]
async fn asking_for_the_head_of_an_answer_counts_like_asking_for_it() {
    let table = limit(
        "roles",
        "routes = [\"GET /roles\"]; counter = \"key\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let site = Site::with_redis(&table).await;
    let client = site.client(Private).await;

    let head = client.send(client.request(Method::HEAD, CHEAP)).await;

    assert_eq!(head.header("x-ratelimit-remaining"), "0");
    assert_eq!(client.get(CHEAP).await.status, TOO_MANY);
    assert_eq!(client.get("/permissions").await.status, OK);
}

#[tokio::test]
async fn the_documented_rights_of_a_redis_user_are_enough_for_limits() {
    let redis = TestRedis::start(&[]).await;
    let rights =
        "~cloakroom:* +time +set +get +pttl +ping +evalsha +eval +lindex +lpop +rpush +pexpire";
    redis
        .run(&format!("ACL SETUSER limited on >secret {rights}"))
        .await;
    let address = redis.url();
    let (_, host) = address.split_once('@').unwrap();
    let url = format!("redis://limited:secret@{host}");
    let table = limit(
        "few",
        "counter = \"key\"; requests = 2; window = \"1m\"; action = \"block 1m\"",
    );
    let site = Site::start(&table, Some(redis), |config| {
        config.redis.url = Some(Secret::new(url));
    })
    .await;
    let client = site.client(Private).await;

    assert_eq!(statuses(&client, 3).await, [200, 200, 429]);
    assert_eq!(site.redis().keys().await.len(), 2);
}

#[tokio::test]
async fn a_table_that_cannot_be_used_keeps_a_node_from_starting() {
    let site = Site::with_redis("").await;
    let mut config = site.first.vault.config.clone();
    let file = config.limits.file.clone().unwrap();
    std::fs::write(&file, limit("few", "counter = \"ip\"")).unwrap();

    let refusal = Vault::open(config.clone()).await.err().unwrap().to_string();
    config.limits.file = Some("/nowhere/limits.toml".into());
    let missing = Vault::open(config).await.err().unwrap().to_string();

    assert!(
        refusal.contains("limits.toml") && refusal.contains("missing field"),
        "{refusal}"
    );
    assert!(missing.contains("entity not found"), "{missing}");
}

#[tokio::test]
async fn doctor_tells_when_several_nodes_count_by_themselves() {
    let site = Site::start("", None, |_| {}).await;
    let told = async || {
        let findings = doctor::examine(&site.first.vault.config).await;
        let found = findings
            .into_iter()
            .find(|finding| finding.area == "limits")
            .unwrap();
        (found.verdict, found.what)
    };
    rate_limits::tell_node(&site.first.vault).await.unwrap();

    let alone = told().await;
    let second = site.first.second_node().await;
    rate_limits::tell_node(&second.vault).await.unwrap();
    let together = told().await;

    assert_eq!(alone.0, Verdict::Good, "{}", alone.1);
    assert_eq!(together.0, Verdict::Warning, "{}", together.1);
    assert!(
        together.1.starts_with("2 nodes run without redis.url"),
        "{}",
        together.1
    );
}

/// Everything that a running node does beside answering.
fn run_jobs(node: &TestVault) -> JoinSet<()> {
    let readiness = Readiness::new(jobs::CHECKS);
    jobs::start(&node.vault, &readiness)
}
