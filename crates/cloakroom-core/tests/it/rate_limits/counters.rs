//! Counters by key, IP address and tenant.

use std::time::Duration;

use cloakroom::access::ApplicationKind::{Management, Private, Public};
use cloakroom::tenants::{self, TenantChanges};
use cloakroom_testkit::{Client, LogCapture, TestRedis, TestResponse};
use http::Method;
use serde_json::json;
use tokio::time::sleep;

use super::deployment::{Deployment, limit};
use super::{CHEAP, OK, TOO_MANY, statuses};

/// Sends a request through a proxy that forwards for this address.
async fn get_from(client: &Client, address: &str) -> TestResponse {
    let request = client.request(Method::GET, CHEAP);
    client
        .send(request.header("x-forwarded-for", address))
        .await
}

/// Entries in the future were written before the clock was set back.
#[tokio::test]
async fn a_redis_clock_that_is_set_back_locks_no_client_out() {
    let table = limit(
        "few",
        "counter = \"ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;
    client.get(CHEAP).await;
    let counter = deployment.redis().keys().await;
    let counter = counter.iter().find(|key| key.contains(":limit:")).unwrap();
    let ahead = "redis.call('DEL', ARGV[1])
        for _ = 1, 5 do
            local later = string.format('%.0f000000', redis.call('TIME')[1] + 21600)
            redis.call('RPUSH', ARGV[1], later .. ':0:5')
        end";
    deployment.redis().script(ahead, counter).await;

    assert_eq!(statuses(&client, 4).await, [200, 200, 200, 429]);
}

#[tokio::test]
async fn key_or_ip_uses_two_counters_and_rejections_count_toward_neither() {
    let table = limit(
        "private",
        "application = \"private\"; counter = \"key or ip\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::start(&table, Some(TestRedis::start(&[]).await), |config| {
        config.http.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let (one, two) = (
        deployment.client(Private).await,
        deployment.client(Private).await,
    );
    let public = deployment.client(Public).await;

    let mut found = Vec::new();
    for (client, address) in [
        (&one, "192.0.2.1"),
        (&two, "192.0.2.1"),
        (&two, "192.0.2.1"),
        // The address is exhausted, and then the second key.
        (&one, "192.0.2.1"),
        (&two, "192.0.2.2"),
        (&two, "192.0.2.2"),
        // The rejections above were not counted: the first key has two requests left.
        (&one, "192.0.2.3"),
        (&one, "192.0.2.3"),
        (&one, "192.0.2.3"),
        (&public, "192.0.2.1"),
    ] {
        found.push(get_from(client, address).await.status.as_u16());
    }

    assert_eq!(found, [200, 200, 200, 429, 200, 429, 200, 200, 429, 200]);
}

#[tokio::test]
async fn an_unlisted_proxy_is_reported_once() {
    let lines = LogCapture::start();
    let table = limit(
        "private",
        "application = \"private\"; counter = \"key\"; requests = 9; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::start(&table, None, |config| {
        config.http.trusted_proxies = "10.0.0.0/8".parse().unwrap();
    })
    .await;
    let client = deployment.client(Private).await;

    let without = client.get(CHEAP).await;
    let before = lines.count("unlisted_proxy");
    for address in ["192.0.2.1", "192.0.2.2"] {
        get_from(&client, address).await;
    }

    assert_eq!((without.status.as_u16(), before), (200, 0));
    assert_eq!(lines.count("unlisted_proxy"), 1, "{}", lines.text());
}

#[tokio::test]
async fn a_blocked_key_is_blocked_from_every_address() {
    let table = limit(
        "management",
        "application = \"management\"; counter = \"key\"; requests = 2; window = \"500ms\"; action = \"block 2s\"",
    );
    let deployment = Deployment::start(&table, Some(TestRedis::start(&[]).await), |config| {
        config.http.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let client = deployment.client(Management).await;

    let mut found = Vec::new();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        found.push(get_from(&client, address).await.status.as_u16());
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
async fn forwarded_addresses_are_trusted_only_from_configured_proxies() {
    let table = limit(
        "everything",
        "counter = \"ip\"; requests = 2; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    let client = deployment.client(Private).await;

    let mut found = Vec::new();
    for address in ["192.0.2.1", "192.0.2.2", "10.0.0.1, 127.0.0.1"] {
        found.push(get_from(&client, address).await.status.as_u16());
    }

    assert_eq!(found, [200, 200, 429]);
    let names = deployment.redis().keys().await;
    assert_eq!(names, ["cloakroom:test:limit:everything:ip=127.0.0.1"]);
}

#[tokio::test]
async fn exempt_addresses_still_count_toward_key_limits() {
    let by_address = limit(
        "everything",
        "counter = \"ip\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let by_key = limit(
        "keys",
        "counter = \"key\"; requests = 3; window = \"1m\"; action = \"throttle\"",
    );
    let redis = TestRedis::start(&[]).await;
    let deployment = Deployment::start(&(by_address + &by_key), Some(redis), |config| {
        config.limits.exempt_addresses = "127.0.0.0/8".parse().unwrap();
    })
    .await;

    assert_eq!(
        statuses(&deployment.client(Private).await, 4).await,
        [200, 200, 200, 429]
    );
}

#[tokio::test]
async fn tenant_quotas_multiply_or_lift_the_limit() {
    let table = limit(
        "few",
        "tenant = \"test\"; counter = \"key and ip\"; requests = 1; window = \"1m\"; action = \"throttle\"",
    );
    let deployment = Deployment::with_redis(&table).await;
    for (quota, expected) in [("3x", [200, 200, 200, 429]), ("unlimited", [200; 4])] {
        let changes = TenantChanges {
            quotas: vec![("rate_limit".to_owned(), json!(quota))],
            ..TenantChanges::default()
        };
        tenants::update_as_operator(&deployment.node.vault, deployment.tenant.id, &changes)
            .await
            .unwrap();
        let client = deployment.client(Private).await;

        assert_eq!(statuses(&client, 4).await, expected, "{quota}");
    }
}
