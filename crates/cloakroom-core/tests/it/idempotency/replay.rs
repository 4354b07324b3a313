//! Execution once, and replay of the stored response.

use std::time::Duration;

use cloakroom::members::{self, Email, NewMember, Role};
use cloakroom::{ids, jobs};
use cloakroom_testkit::{DatabaseProxy, TestDatabase, TestResponse, TestVault};
use http::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::json;

use super::{Fixture, count, note, post, replayable, send};

/// Log entries of writes, and of reads.
const CHANGES: &str = "log where operation <> 2";
const READS: &str = "log where operation = 2";

/// Covers 21.1.
///
/// I03: the response is stored in the same transaction as the change, and the replay is byte-identical.
#[tokio::test]
async fn writes_are_executed_once_and_commit_with_their_response() {
    let fixture = Fixture::start().await;
    let mut writes = fixture.token_writes().await;
    writes.extend(fixture.management_writes().await);
    for (client, (operation, body)) in writes {
        let (method, path) = operation.split_once(' ').unwrap();
        let method: Method = method.parse().unwrap();
        let entries = count(&fixture.database, CHANGES).await;

        let first = send(client, &method, path, "once", &body).await;
        let after = count(&fixture.database, CHANGES).await;
        let reads = count(&fixture.database, READS).await;
        let again = send(client, &method, path, "once", &body).await;

        assert!(first.status.is_success(), "{operation}: {}", first.body);
        assert_eq!(replayable(&first), replayable(&again), "{operation}");
        assert!(entries < after, "{operation} logged nothing");
        assert_eq!(
            count(&fixture.database, CHANGES).await,
            after,
            "{operation}"
        );
        // A replay is logged as a read.
        assert!(reads < count(&fixture.database, READS).await, "{operation}");
    }
    let uncommitted_together =
        "reply where not exists (select from log where log.xmin::text = reply.xmin::text)";
    assert_eq!(count(&fixture.database, uncommitted_together).await, 0);
    assert_eq!(count(&fixture.database, "reply").await, 14);
    assert_eq!(count(&fixture.database, "reply_lease").await, 0);
    assert_eq!(
        fixture.vault.vault.config.idempotency.lease,
        Duration::from_secs(60)
    );
}

/// Members are created by CLI commands only.
#[tokio::test]
async fn member_updates_are_executed_once() {
    let fixture = Fixture::start().await;
    let mut ids = Vec::new();
    for (email, role) in [
        ("o@example.com", Role::Owner),
        ("m@example.com", Role::Admin),
    ] {
        let new = NewMember {
            email: Email::parse(email).unwrap(),
            role,
            first_name: None,
            last_name: None,
        };
        let added = members::add(&fixture.vault.vault, fixture.tenant.id, new).await;
        ids.push(added.unwrap().id);
    }
    let writes = [
        (
            format!("/tenants/self/members/{}", ids[1]),
            json!({"role": "READ_ONLY"}),
        ),
        ("/tenants/self/owner".into(), json!({"member_id": ids[1]})),
    ];
    for (path, body) in writes {
        let first = send(&fixture.management, &Method::PUT, &path, "k", &body).await;
        let again = send(&fixture.management, &Method::PUT, &path, "k", &body).await;
        assert_eq!(first.status, StatusCode::OK, "{path} {}", first.body);
        assert_eq!(replayable(&first), replayable(&again), "{path}");
    }
    let uncommitted_together =
        "reply where not exists (select from log where log.xmin::text = reply.xmin::text)";
    assert_eq!(
        (
            count(&fixture.database, "reply").await,
            count(&fixture.database, uncommitted_together).await
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn requests_without_changes_are_replayed_too() {
    let fixture = Fixture::start().await;
    let account =
        json!({"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}});
    let token = fixture.private.post("/tokens", account).await.id();
    let body = json!({"token_id": token, "country_code": "US"});
    let path = "/enrichments/bank-account-verify";
    let duplicate = json!({"type": "token", "data": "equal", "deduplicate_token": true});
    fixture.private.post("/tokens", duplicate.clone()).await;

    let first = post(&fixture.private, path, "k", body.clone()).await;
    let again = post(&fixture.private, path, "k", body).await;
    let deduplicated = post(&fixture.private, "/tokens", "k", duplicate.clone()).await;
    let deduplicated_again = post(&fixture.private, "/tokens", "k", duplicate).await;

    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    assert_eq!(replayable(&first), replayable(&again));
    assert_eq!(deduplicated.body["_extras"]["deduplicated"], true);
    assert_eq!(replayable(&deduplicated), replayable(&deduplicated_again));
    assert_eq!(count(&fixture.database, "reply").await, 2);
}

/// Covers 21.2.
///
/// Bodies are compared only if the operator enables it.
#[tokio::test]
async fn another_body_with_the_same_key_gets_the_first_response() {
    let lax = Fixture::start().await;
    let strict = TestVault::start_with(TestDatabase::create().await, |config| {
        config.idempotency.refuse_other_bodies = true;
    })
    .await;
    let strict = strict.revealing_client().await;

    let first = post(&lax.private, "/tokens", "k", note("a")).await;
    let other = post(&lax.private, "/tokens", "k", note("b")).await;
    let garbage = lax.private.request(Method::POST, "/tokens");
    let garbage = garbage
        .header("bt-idempotency-key", "k")
        .header("content-type", "application/json");
    let garbage = lax.private.send(garbage.body("{")).await;
    post(&strict, "/tokens", "k", note("a")).await;
    let rejected = post(&strict, "/tokens", "k", note("b")).await;
    let same = post(&strict, "/tokens", "k", note("a")).await;

    assert_eq!(replayable(&first), replayable(&other));
    assert_eq!(replayable(&first), replayable(&garbage));
    assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(same.status, StatusCode::CREATED);
}

/// Covers 21.3.
#[tokio::test]
async fn failed_requests_release_the_key() {
    let fixture = Fixture::start().await;
    let wrong = json!({"type": "card", "data": {"number": "4242424242424241"}});
    let missing_token = format!("/tokens/{}", ids::new_uuid());

    let rejected = post(&fixture.private, "/tokens", "k", wrong).await;
    let denied = post(&fixture.management, "/tokens", "k", note("a")).await;
    let missing = send(
        &fixture.private,
        &Method::PATCH,
        &missing_token,
        "k",
        &json!({"data": "b"}),
    )
    .await;
    let leases = count(&fixture.database, "reply_lease").await;
    let done = post(&fixture.private, "/tokens", "k", note("a")).await;

    let statuses = [rejected.status, denied.status, missing.status, done.status];
    assert_eq!(statuses.map(|status| status.as_u16()), [400, 403, 404, 201]);
    assert_eq!(leases, 0);
    assert_eq!(count(&fixture.database, "reply").await, 1);
}

/// Covers 21.8.
#[tokio::test]
async fn stored_responses_expire_after_a_day() {
    let fixture = Fixture::start().await;
    let node = ids::new_uuid();
    let clock = &fixture.vault.vault.clock;
    let now = clock.now().await.unwrap();
    let post_earlier = async |minutes: i64, body: &str| {
        clock.freeze(Some(now - SignedDuration::from_mins(minutes)));
        let id = post(&fixture.private, "/tokens", "k", note(body))
            .await
            .id();
        clock.freeze(None);
        id
    };
    let first = post_earlier(24 * 60 - 1, "a").await;
    let still = post(&fixture.private, "/tokens", "k", note("a")).await.id();
    jobs::sweep_once(&fixture.vault.vault, node).await.unwrap();
    let stored = count(&fixture.database, "reply").await;
    let empty = "delete from reply";
    fixture.database.batch_execute(empty).await.unwrap();
    let old = post_earlier(24 * 60, "a").await;
    let second = post_earlier(24 * 60, "a").await;
    jobs::sweep_once(&fixture.vault.vault, node).await.unwrap();

    assert_eq!((&still, stored), (&first, 1));
    assert_ne!(second, old);
    assert_eq!(count(&fixture.database, "reply").await, 0);
}

/// I05: the stored response of a token expires with it.
#[tokio::test]
async fn stored_responses_expire_with_their_token() {
    let fixture = Fixture::start().await;
    let sql = "select (now() + interval '2 seconds')::text";
    let end: String = fixture.database.query_one(sql, &[]).await.unwrap().get(0);
    let end = end.replace(' ', "T").replace("+00", "+00:00");
    let body = json!({"type": "token", "data": "brief", "expires_at": end});
    let first = post(&fixture.private, "/tokens", "k", body.clone()).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    let again = post(&fixture.private, "/tokens", "k", body.clone()).await;
    let over = "(select from pg_sleep(2)) one";
    count(&fixture.database, over).await;

    let late = post(&fixture.private, "/tokens", "k", body).await;

    assert_eq!(replayable(&first), replayable(&again));
    assert_eq!(late.status, StatusCode::BAD_REQUEST, "{}", late.body);
}

/// A request without a key costs no extra round trip; one with a key costs one.
#[tokio::test]
async fn a_key_costs_one_round_trip_and_its_absence_none() {
    let database = TestDatabase::create().await;
    let proxy = DatabaseProxy::start(&database.url).await;
    let proxy_url = proxy.url.clone();
    let vault = TestVault::start_with(database, |config| {
        config.database.url = Some(cloakroom::config::Secret::new(&proxy_url));
        config.database.max_connections = 1;
    })
    .await;
    let client = vault.revealing_client().await;
    let token = client.post("/tokens", note("a")).await.id();
    let path = format!("/tokens/{token}");
    // Statements are prepared on first use.
    for round in 0..2 {
        for key in ["warm".to_owned(), format!("warm {round}")] {
            post(&client, "/tokens", &key, note("a")).await;
        }
        client.patch(&path, json!({"data": "b"})).await;
    }
    let round_trips =
        async |request: std::pin::Pin<Box<dyn Future<Output = TestResponse> + '_>>| {
            let before = proxy.round_trips();
            let response = request.await;
            assert!(response.status.is_success(), "{}", response.body);
            proxy.round_trips() - before
        };

    let create = round_trips(Box::pin(client.post("/tokens", note("a")))).await;
    let create_once = round_trips(Box::pin(post(&client, "/tokens", "k", note("a")))).await;
    let replay = round_trips(Box::pin(post(&client, "/tokens", "k", note("a")))).await;
    let patch = round_trips(Box::pin(client.patch(&path, json!({"data": "c"})))).await;
    let body = json!({"data": "d"});
    let patch_once = round_trips(Box::pin(send(&client, &Method::PATCH, &path, "k", &body))).await;

    // The replay is logged before it is sent.
    assert_eq!((create, create_once, replay), (1, 2, 2));
    assert_eq!(patch_once, patch + 1);
}
