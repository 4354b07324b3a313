//! Databases that are unreachable, read-only, blocked or paused.

use std::time::{Duration, Instant};

use cloakroom_testkit::{TestDatabase, TestServer, TestVault};
use http::StatusCode;
use serde_json::json;

#[tokio::test]
async fn an_unreachable_database_is_reported() {
    let server = TestServer::start().await;
    let database = TestDatabase::on(&server.postgres.url()).await;
    let vault = TestVault::start_with(database, |_| {}).await;
    let client = vault.revealing_client().await;
    let id = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await
        .id();

    drop(server);
    let response = client.get(&format!("/tokens/{id}")).await;

    assert_eq!(
        response.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        response.body
    );
    assert_eq!(response.body["code"], "database_unavailable");
    assert_eq!(response.header("retry-after"), "1");
}

#[tokio::test]
async fn abandoned_writes_do_not_block_other_requests() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.database.max_connections = 2;
        config.database.acquire_timeout = Duration::from_secs(2);
    })
    .await;
    let client = vault.revealing_client().await;
    let id = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await
        .id();
    let mut blocker = vault.database.connect().await;
    let lock = blocker.transaction().await.unwrap();
    lock.execute("lock table token in exclusive mode", &[])
        .await
        .unwrap();

    // More clients that give up than there are connections.
    for _ in 0..4 {
        let write = client.post("/tokens", json!({"type": "token", "data": 2}));
        let outcome = tokio::time::timeout(Duration::from_millis(200), write).await;
        assert!(outcome.is_err(), "the lock did not hold the write");
    }
    let found = client.get(&format!("/tokens/{id}")).await;

    assert_eq!(found.status, StatusCode::OK, "{}", found.body);
}

#[tokio::test]
async fn read_only_servers_are_reported_as_unavailable() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;
    let admin = vault.database.connect().await;
    let name: String = admin
        .query_one("select current_database()", &[])
        .await
        .unwrap()
        .get(0);
    let demote = format!("alter database {name} set default_transaction_read_only = on");
    admin.batch_execute(&demote).await.unwrap();
    let terminate = "select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'cloakroom' and datname = current_database()";
    admin.batch_execute(terminate).await.unwrap();

    // Once the node detects the lost connections, it rejects new ones: they are read-only.
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let response = client
            .post("/tokens", json!({"type": "token", "data": 1}))
            .await;
        assert_eq!(
            response.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            response.body
        );
        if response.body["code"] == "database_unavailable" {
            break;
        }
        assert!(Instant::now() < deadline, "{}", response.body);
    }
}

#[tokio::test]
async fn a_paused_database_makes_the_node_unready() {
    let server = TestServer::start().await;
    let database = TestDatabase::on(&server.postgres.url()).await;
    let vault = TestVault::start_with(database, |config| {
        config.database.read_deadline = Duration::from_millis(500);
        config.database.acquire_timeout = Duration::from_millis(500);
    })
    .await;
    let readiness = cloakroom::admin::Readiness::new(cloakroom::jobs::CHECKS);
    let _jobs = cloakroom::jobs::start(&vault.vault, &readiness);
    let wait_for = async |ready: bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while readiness.snapshot().is_ready() != ready {
            assert!(Instant::now() < deadline, "never became ready = {ready}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    wait_for(true).await;

    let paused = PausedServer::pause(&server);
    wait_for(false).await;
    drop(paused);
    wait_for(true).await;
}

/// A server that is paused until this is dropped, also when the test fails.
struct PausedServer<'a>(&'a TestServer);

impl<'a> PausedServer<'a> {
    fn pause(server: &'a TestServer) -> Self {
        signal_postgres(server, "STOP");
        Self(server)
    }
}

impl Drop for PausedServer<'_> {
    fn drop(&mut self) {
        signal_postgres(self.0, "CONT");
    }
}

/// Signals the server and every process that it started.
fn signal_postgres(server: &TestServer, signal: &str) {
    let pid = server.postgres.pid().to_string();
    let children = std::process::Command::new("pgrep")
        .args(["-P", &pid])
        .output()
        .unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    for pid in children.split_whitespace().chain([pid.as_str()]) {
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, pid])
            .status()
            .unwrap();
        assert!(sent.success());
    }
}
