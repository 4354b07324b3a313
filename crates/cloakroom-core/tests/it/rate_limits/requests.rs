//! Rejected requests, and which requests are counted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloakroom::access::ApplicationKind::Private;
use http::{Method, StatusCode};
use tokio::time::sleep;

use super::deployment::{Deployment, limit};
use super::{CHEAP, OK, TOO_MANY, statuses};

#[tokio::test]
async fn requests_over_the_limit_are_rejected_with_retry_headers() {
    let table = limit(
        "few",
        "counter = \"key and ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;

    let admitted = [
        client.get(CHEAP).await,
        client.get(CHEAP).await,
        client.get(CHEAP).await,
    ];
    let rejected = client.get(CHEAP).await;
    let second_node = deployment.node.second_node().await;
    let rejected_elsewhere = client.at(&second_node.base_url).get(CHEAP).await;
    let another_key = deployment.client(Private).await.get(CHEAP).await;

    for (response, left) in admitted.iter().zip(["2", "1", "0"]) {
        assert_eq!(response.status, OK);
        assert_eq!(response.header("x-ratelimit-limit"), "3");
        assert_eq!(response.header("x-ratelimit-remaining"), left);
        assert_eq!(response.header("ratelimit-policy"), "\"few\";q=3;w=60");
        assert!(
            response
                .header("ratelimit")
                .starts_with(&format!("\"few\";r={left};t="))
        );
        // Absent on admitted requests: the official clients sleep until the reset before every retry.
        assert_eq!(response.header("x-ratelimit-reset"), "");
        assert_eq!(response.header("retry-after"), "");
    }
    for response in [&rejected, &rejected_elsewhere] {
        assert_eq!(response.status, TOO_MANY);
        assert_eq!(response.body["code"], "rate_limited");
        assert_eq!(response.body["title"], "Too Many Requests");
        let detail = "The limit `few` allows 3 requests in 1m per key and address. The operator can change it \
                      (limits.file, or the quota rate_limit of the tenant).";
        assert_eq!(response.body["detail"], detail);
        let wait: i64 = response.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        let reset: i64 = response.header("x-ratelimit-reset").parse().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(
            (reset - now.as_secs().cast_signed() - wait).abs() <= 2,
            "{reset}"
        );
        assert_eq!(response.header("x-ratelimit-remaining"), "0");
    }
    assert_eq!(another_key.status, OK);
}

#[tokio::test]
async fn a_rejection_costs_one_redis_call_and_then_none() {
    let table = limit(
        "few",
        "counter = \"key and ip\"; requests = 2; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;

    let found = statuses(&client, 6).await;
    let evalsha_calls = deployment.redis().calls_of("evalsha").await;
    let eval_calls = deployment.redis().calls_of("eval").await;
    deployment.redis().run("SCRIPT FLUSH").await;
    let afterwards = statuses(&deployment.client(Private).await, 3).await;

    assert_eq!(found, [200, 200, 429, 429, 429, 429]);
    // The text of the script is sent once; its digest is the one that Redis computes.
    assert_eq!((evalsha_calls, eval_calls), (3, 1));
    assert_eq!(afterwards, [200, 200, 429]);
    assert_eq!(deployment.redis().calls_of("eval").await, 2);
}

#[tokio::test]
async fn limits_are_checked_after_the_key_and_before_the_body() {
    let table = limit(
        "few",
        "counter = \"key\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;
    client.get(CHEAP).await;

    let malformed = client.post_text("/tokens", "{", "application/json").await;
    let unknown = client
        .with_key("key_test_us_pub_1111111111111111111111")
        .get(CHEAP)
        .await;

    assert_eq!(malformed.status, TOO_MANY);
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn browsers_may_read_the_rate_limit_headers() {
    let table = limit(
        "few",
        "counter = \"key\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;

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
async fn invalid_keys_count_toward_their_address_and_block_it_before_the_lookup() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 4; window = \"1m\"; action = \"block 1m\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;
    let guess = client.with_key("key_test_us_pub_1111111111111111111111");

    let open = client.get("/ping").await.status;
    let nowhere = client.get("/nowhere").await.status;
    let guesses = statuses(&guess, 3).await;
    let evalsha_calls = deployment.redis().calls_of("evalsha").await;
    let blocked = [
        client.get(CHEAP).await.status,
        client.get("/ping").await.status,
    ];

    assert_eq!((open, nowhere), (OK, StatusCode::NOT_FOUND));
    assert_eq!(guesses, [401, 401, 429]);
    assert_eq!(blocked, [TOO_MANY; 2]);
    assert_eq!(deployment.redis().calls_of("evalsha").await, evalsha_calls);
}

/// Holds without Redis too: the test blocks the key lookup, so a request that reaches it times out.
#[tokio::test]
async fn a_node_without_redis_blocks_invalid_keys_before_the_lookup() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 2; window = \"1m\"; action = \"block 1m\"",
    );
    let deployment = Deployment::start(&table, None, |_| {}).await;
    let guess = deployment.client(Private).await;
    let guess = guess.with_key("key_test_us_pub_1111111111111111111111");
    let guesses = statuses(&guess, 3).await;
    let database = deployment.node.database.connect().await;
    let held = "begin; lock table application_key in access exclusive mode";
    database.batch_execute(held).await.unwrap();

    let blocked = tokio::time::timeout(Duration::from_secs(2), statuses(&guess, 1)).await;

    assert_eq!((guesses, blocked), (vec![401, 401, 429], Ok(vec![429])));
}

/// Disconnecting before the response does not avoid the count.
#[tokio::test]
async fn clients_that_disconnect_early_are_counted() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;
    let guess = client.with_key("key_test_us_pub_1111111111111111111111");
    let blocker = deployment.node.database.connect().await;
    let held = "begin; lock table application_key in access exclusive mode";
    blocker.batch_execute(held).await.unwrap();
    for _ in 0..3 {
        let outcome = tokio::time::timeout(Duration::from_millis(200), guess.get(CHEAP)).await;
        assert!(outcome.is_err());
    }
    blocker.batch_execute("commit").await.unwrap();

    // Requests are counted soon after their clients disconnect.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while deployment.redis().calls_of("evalsha").await < 3 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "requests were not counted"
        );
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.get(CHEAP).await.status, TOO_MANY);
}

#[tokio::test]
async fn head_requests_count_like_get_requests() {
    let table = limit(
        "roles",
        "routes = [\"GET /roles\"]; counter = \"key\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;

    let head = client.send(client.request(Method::HEAD, CHEAP)).await;

    assert_eq!(head.header("x-ratelimit-remaining"), "0");
    assert_eq!(client.get(CHEAP).await.status, TOO_MANY);
    assert_eq!(client.get("/permissions").await.status, OK);
}
