//! Which commits are acknowledged.

use std::time::{Duration, Instant};

use cloakroom_testkit::{TestDatabase, TestServer, TestVault};
use http::StatusCode;
use serde_json::json;

/// A vault whose commits wait for a standby that does not exist.
struct WaitingForStandby {
    vault: TestVault,
    // Dropped last: the connections of the vault close first.
    _server: TestServer,
}

impl WaitingForStandby {
    async fn start(write_deadline: Duration) -> (Self, cloakroom_testkit::Client) {
        let server = TestServer::start().await;
        let database = TestDatabase::on(&server.postgres.url()).await;
        let vault = TestVault::start_with(database, |config| {
            config.database.write_deadline = write_deadline;
        })
        .await;
        let client = vault.revealing_client().await;
        // The container exists and the connection is warm before commits start to wait.
        client
            .post("/tokens", json!({"type": "token", "data": "before"}))
            .await;
        let admin = vault.database.connect().await;
        admin
            .execute("alter system set synchronous_standby_names = 'nobody'", &[])
            .await
            .unwrap();
        admin.execute("select pg_reload_conf()", &[]).await.unwrap();
        while standby_names(&admin).await != "nobody" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (
            Self {
                vault,
                _server: server,
            },
            client,
        )
    }
}

async fn standby_names(admin: &tokio_postgres::Client) -> String {
    admin
        .query_one("show synchronous_standby_names", &[])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn commits_with_a_warning_are_not_acknowledged() {
    let (waiting, client) = WaitingForStandby::start(Duration::from_secs(20)).await;
    let admin = waiting.vault.database.connect().await;

    let create = client.post("/tokens", json!({"type": "token", "data": "unsure"}));
    let cancel = async {
        let waiting = "select pg_cancel_backend(pid) from pg_stat_activity
            where wait_event = 'SyncRep'";
        while admin.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (response, ()) = tokio::join!(create, cancel);

    assert_eq!(
        response.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        response.body
    );
    assert_eq!(response.body["code"], "outcome_unknown");
    // The row is visible: the primary has committed it, but no standby has it.
    let stored = admin
        .query_one("select count(*) from token", &[])
        .await
        .unwrap();
    assert_eq!(stored.get::<_, i64>(0), 2);
}

/// I02 for replayed responses: they wait for the standby as the first one did.
#[tokio::test]
async fn idempotency_keys_do_not_confirm_unreplicated_commits() {
    let (waiting, client) = WaitingForStandby::start(Duration::from_secs(2)).await;
    let admin = waiting.vault.database.connect().await;
    let create = async || {
        let request = client
            .request(http::Method::POST, "/tokens")
            .header("bt-idempotency-key", "k")
            .header("content-type", "application/json");
        let body = json!({"type": "token", "data": "unsure"}).to_string();
        client.send(request.body(body)).await
    };
    let cancel = async {
        let waiting = "select pg_cancel_backend(pid) from pg_stat_activity
            where wait_event = 'SyncRep'";
        while admin.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (first, ()) = tokio::join!(create(), cancel);
    let again = create().await;
    admin
        .execute("alter system reset synchronous_standby_names", &[])
        .await
        .unwrap();
    admin.execute("select pg_reload_conf()", &[]).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let confirmed = loop {
        let response = create().await;
        if response.status == StatusCode::CREATED {
            break response;
        }
        assert!(Instant::now() < deadline, "{}", response.body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };

    for response in [first, again] {
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            response.body["code"], "outcome_unknown",
            "{}",
            response.body
        );
        assert_eq!(response.body["retry_safe"], true, "{}", response.body);
    }
    let stored = admin.query_one("select count(*) from token", &[]).await;
    assert_eq!(stored.unwrap().get::<_, i64>(0), 2, "{}", confirmed.body);
}

#[tokio::test]
async fn writes_past_their_deadline_are_unknown_and_never_canceled() {
    let (waiting, client) = WaitingForStandby::start(Duration::from_millis(500)).await;
    let admin = waiting.vault.database.connect().await;

    let started = Instant::now();
    let response = client
        .post("/tokens", json!({"type": "token", "data": "unsure"}))
        .await;

    assert_eq!(response.body["code"], "outcome_unknown");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    admin
        .execute("alter system reset synchronous_standby_names", &[])
        .await
        .unwrap();
    admin.execute("select pg_reload_conf()", &[]).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let stored = admin
            .query_one("select count(*) from token", &[])
            .await
            .unwrap();
        if stored.get::<_, i64>(0) == 2 {
            break;
        }
        assert!(Instant::now() < deadline, "the write was rolled back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let after = client
        .post("/tokens", json!({"type": "token", "data": "after"}))
        .await;
    assert_eq!(after.status, StatusCode::CREATED, "{}", after.body);
}
