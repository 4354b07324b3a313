//! Concurrent requests, leases, and requests that are interrupted.

use std::time::{Duration, Instant};

use cloakroom_testkit::{TestDatabase, TestVault};
use http::StatusCode;
use tokio_postgres::Client as Database;

use super::{Fixture, count, note, post, replayable};

/// Waits until `blocked` sessions wait for a lock.
async fn until_blocked(database: &Database, blocked: i64) {
    let waiting =
        "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let deadline = Instant::now() + Duration::from_secs(10);
    while count(database, waiting).await < blocked {
        assert!(Instant::now() < deadline, "no session waits for a lock");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Covers 5.24, 21.4.
#[tokio::test]
async fn concurrent_requests_get_a_conflict() {
    let fixture = Fixture::start().await;
    let blocker = fixture.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let second = fixture.vault.second_node().await;

    let first = post(&fixture.private, "/tokens", "k", note("a"));
    let others = async {
        until_blocked(&fixture.database, 1).await;
        let here = post(&fixture.private, "/tokens", "k", note("a")).await;
        let there = post(
            &fixture.private.at(&second.base_url),
            "/tokens",
            "k",
            note("a"),
        )
        .await;
        blocker.batch_execute("commit").await.unwrap();
        [here, there]
    };
    let (first, others) = tokio::join!(first, others);
    let replayed = post(
        &fixture.private.at(&second.base_url),
        "/tokens",
        "k",
        note("a"),
    )
    .await;

    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    for other in others {
        assert_eq!(other.status, StatusCode::CONFLICT);
        assert_eq!(other.header("retry-after"), "1");
    }
    // The `Location` is the one of the first request.
    assert_eq!(replayable(&first), replayable(&replayed));
    assert_eq!(count(&fixture.database, "token").await, 1);
}

/// A node stalls for longer than its lease: the request that took over wins, and the first one does nothing.
#[tokio::test]
async fn requests_that_lost_their_lease_are_stopped() {
    let fixture = Fixture::start().await;
    let second = fixture.vault.second_node().await;
    let blocker = fixture.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();

    let stalled = post(&fixture.private, "/tokens", "k", note("a"));
    let taken_over = async {
        until_blocked(&fixture.database, 1).await;
        let end = "update reply_lease set until = now() - interval '1 second'";
        fixture.database.batch_execute(end).await.unwrap();
        let there = fixture.private.at(&second.base_url);
        let takeover = post(&there, "/tokens", "k", note("a"));
        let unblocked = async {
            until_blocked(&fixture.database, 2).await;
            blocker.batch_execute("commit").await.unwrap();
        };
        tokio::join!(takeover, unblocked).0
    };
    let (stalled, taken_over) = tokio::join!(stalled, taken_over);

    assert_eq!(
        taken_over.status,
        StatusCode::CREATED,
        "{}",
        taken_over.body
    );
    assert_eq!(count(&fixture.database, "token").await, 1);
    // The stalled request ends before or after the other one.
    match stalled.status {
        StatusCode::CONFLICT => {}
        status => assert_eq!(
            (status, &stalled.bytes),
            (StatusCode::CREATED, &taken_over.bytes)
        ),
    }
    let again = post(&fixture.private, "/tokens", "k", note("a")).await;
    assert_eq!(again.bytes, taken_over.bytes);
}

/// Another request holds the lease and is still running: a write under the old lease does nothing.
#[tokio::test]
async fn writes_under_a_lost_lease_are_discarded() {
    let fixture = Fixture::start().await;
    let blocker = fixture.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let taken_over = async {
        until_blocked(&fixture.database, 1).await;
        let take = "update reply_lease set fence = fence + 1";
        fixture.database.batch_execute(take).await.unwrap();
        blocker.batch_execute("commit").await.unwrap();
    };
    let (stalled, ()) = tokio::join!(
        post(&fixture.private, "/tokens", "k", note("a")),
        taken_over
    );

    assert_eq!(stalled.status, StatusCode::CONFLICT, "{}", stalled.body);
    assert_eq!(count(&fixture.database, "token").await, 0);
    assert_eq!(count(&fixture.database, "reply_lease").await, 1);
}

/// Covers 21.9.
///
/// A lease of a crashed node delays other requests until it expires, and no longer.
#[tokio::test]
async fn a_crashed_node_blocks_requests_only_until_its_lease_expires() {
    let database = TestDatabase::create().await;
    let vault = TestVault::start_with(database, |config| {
        config.idempotency.lease = Duration::from_secs(2);
    })
    .await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let blocker = vault.database.connect().await;
    // The lease of a request that never ends: its row lock is not released.
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let abandoned = tokio::time::timeout(
        Duration::from_millis(300),
        post(&client, "/tokens", "k", note("a")),
    );
    let concurrent = async {
        until_blocked(&database, 1).await;
        post(&client, "/tokens", "k", note("a")).await
    };
    let (abandoned, concurrent) = tokio::join!(abandoned, concurrent);
    let terminate = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    database
        .batch_execute("update reply_lease set fence = fence + 1")
        .await
        .unwrap();
    database.batch_execute(terminate).await.unwrap();
    blocker.batch_execute("commit").await.unwrap();

    let mut rejected = 0;
    let done = loop {
        let response = post(&client, "/tokens", "k", note("a")).await;
        if response.status != StatusCode::CONFLICT {
            break response;
        }
        rejected += 1;
        assert!(rejected <= 25, "{rejected}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    assert!(abandoned.is_err());
    assert_eq!(concurrent.status, StatusCode::CONFLICT);
    assert_eq!(done.status, StatusCode::CREATED);
    assert!(rejected > 0);
    assert_eq!(count(&database, "token").await, 1);
}

/// A client that timed out gets the response when it retries.
#[tokio::test]
async fn requests_finish_after_their_client_disconnects() {
    let fixture = Fixture::start().await;
    let blocker = fixture.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let timeout = Duration::from_millis(300);
    let outcome =
        tokio::time::timeout(timeout, post(&fixture.private, "/tokens", "k", note("a"))).await;
    assert!(outcome.is_err());
    blocker.batch_execute("commit").await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while count(&fixture.database, "token").await == 0 {
        assert!(
            Instant::now() < deadline,
            "the request was canceled with its client"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let again = post(&fixture.private, "/tokens", "k", note("a")).await;

    assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
    assert_eq!(count(&fixture.database, "token").await, 1);
}

/// With a key, a retry resolves an unknown outcome.
#[tokio::test]
async fn retries_after_a_lost_connection_resolve_the_outcome() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.database.max_connections = 1;
    })
    .await;
    let client = vault.revealing_client().await;
    // A failure while a statement is prepared has a known outcome, so statements are prepared first.
    post(&client, "/tokens", "before", note("a")).await;
    let database = vault.database.connect().await;
    let blocker = vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let cut = async {
        until_blocked(&database, 1).await;
        let kill = "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        database.batch_execute(kill).await.unwrap();
    };
    let (lost, ()) = tokio::join!(post(&client, "/tokens", "k", note("a")), cut);
    blocker.batch_execute("commit").await.unwrap();
    let again = post(&client, "/tokens", "k", note("a")).await;

    assert_eq!(lost.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(lost.body["code"], "database_unavailable");
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(count(&database, "token").await, 2);
}
