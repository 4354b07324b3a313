//! The database: schema, statements, and what may be called done.

use std::time::{Duration, Instant};

use cloakroom::config::{Database, Secret};
use cloakroom::{Vault, storage};
use http::StatusCode;
use serde_json::json;

use crate::support::{TestDatabase, TestServer, TestVault};

fn settings(database: &TestDatabase) -> Database {
    Database {
        url: Some(Secret::new(&database.url)),
        ..Database::default()
    }
}

#[tokio::test]
async fn every_statement_fits_the_schema_and_says_its_name() {
    let database = TestDatabase::create().await;
    let connection = storage::connect_once(&settings(&database)).await.unwrap();

    let mut names = std::collections::HashSet::new();
    for statement in cloakroom::statements() {
        assert!(
            names.insert(statement.name),
            "{} is declared twice",
            statement.name
        );
        let first_line = format!("-- {}\n", statement.name);
        assert!(
            statement.text.starts_with(&first_line),
            "{}",
            statement.name
        );
        let prepared = connection.prepare(&statement).await;
        assert!(prepared.is_ok(), "{}: {:?}", statement.name, prepared.err());
    }

    assert!(names.len() >= 20, "{}", names.len());
}

#[tokio::test]
async fn statements_that_keep_tenants_apart_name_the_tenant() {
    // They start from a key's text, concern the vault as a whole, or look at no row.
    let exceptions = [
        "access::find_credential",
        "access::list_tenants",
        "audit::delete_chains",
        "audit::insert",
        "audit::insert_chain",
        "audit::list_chains",
        "audit::list_days",
        "audit::list_deleted",
        "audit::list_slot",
        "audit::next_chain",
        "audit::now",
        "audit::update_head",
        "applications::sweep",
        "applications::sweep_keys",
        "bins::delete_chunks",
        "bins::delete_older_chunks",
        "bins::delete_older_tables",
        "bins::find_chunk",
        "bins::find_current",
        "bins::insert_chunk",
        "bins::promote",
        "bins::reserve",
        "bins::retire",
        "card_networks::ask_again",
        "card_networks::claim",
        "card_networks::find_place",
        "card_networks::find_ranges",
        "card_networks::keep",
        "client_encryption::sweep",
        "idempotency::sweep",
        "idempotency::sweep_leases",
        "keys::bind_environment",
        "keys::any_tenant_keys",
        "keys::find_environment",
        "keys::insert_system_key",
        "keys::list_system_keys",
        "access::find_session",
        "rate_limits::tell_node",
        "rate_limits::count_nodes",
        "sessions::insert",
        "sessions::sweep",
        "threeds::find_by_id",
        "threeds::find_late",
        "threeds::sweep",
        "token_intents::sweep",
        "token_intents::sweep_codes",
        "tenants::find",
        "tenants::list",
        "tenants::list_deleted",
        "tenants::next_number",
        "tokens::sweep",
        "security_codes::sweep",
    ];
    for statement in cloakroom::statements() {
        let names_tenant = statement.text.contains("tenant_id = $1")
            || statement.text.contains("(tenant_id")
            || statement.text.contains("\n            (tenant_id");
        let excepted = exceptions.contains(&statement.name);
        assert!(
            names_tenant || excepted,
            "{} does not name the tenant",
            statement.name
        );
    }
}

#[tokio::test]
async fn a_vault_does_not_open_without_its_migrations() {
    let vault = TestVault::start().await;
    let empty = TestDatabase::create_empty().await;
    let mut config = vault.configuration();
    config.database = settings(&empty);

    let refused = Vault::open(config.clone()).await.err().unwrap().to_string();
    let connection = storage::connect_once(&settings(&empty)).await.unwrap();
    let applied = storage::migrate(&connection).await.unwrap();
    let again = storage::migrate(&connection).await.unwrap();

    assert!(refused.contains("run `cloakroom migrate`"), "{refused}");
    assert_eq!(applied.len(), storage::MIGRATIONS.len());
    assert!(again.is_empty());
    assert!(Vault::open_or_initialize(config).await.is_ok());
}

#[tokio::test]
async fn two_migrations_at_once_apply_each_step_once() {
    let empty = TestDatabase::create_empty().await;
    let run = async || {
        let connection = storage::connect_once(&settings(&empty)).await.unwrap();
        storage::migrate(&connection)
            .await
            .map(|applied| applied.len())
    };

    let (one, two) = tokio::join!(run(), run());

    assert_eq!(one.unwrap() + two.unwrap(), storage::MIGRATIONS.len());
}

/// A commit that waits for a standby that does not exist.
struct WaitingForStandby {
    vault: TestVault,
    // Dropped last: the vault's connections go first.
    _server: TestServer,
}

impl WaitingForStandby {
    async fn start(write_deadline: Duration) -> (Self, crate::support::Client) {
        let server = TestServer::start().await;
        let database = TestDatabase::on(&server.postgres.url()).await;
        let vault = TestVault::start_with(database, |config| {
            config.database.write_deadline = write_deadline;
        })
        .await;
        let client = vault.revealing_client().await;
        // The container is known and the connection warm before commits start to wait.
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
async fn a_commit_that_comes_back_with_a_warning_is_not_acknowledged() {
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
    let (answer, ()) = tokio::join!(create, cancel);

    assert_eq!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        answer.body
    );
    assert_eq!(answer.body["code"], "outcome_unknown");
    // The row is there: the server said yes, and no standby has it.
    let kept = admin
        .query_one("select count(*) from token", &[])
        .await
        .unwrap();
    assert_eq!(kept.get::<_, i64>(0), 2);
}

/// I02 for answers that are given again: they wait for the standby as the first one did.
#[tokio::test]
async fn an_idempotency_key_makes_no_unconfirmed_commit_certain() {
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
        let answer = create().await;
        if answer.status == StatusCode::CREATED {
            break answer;
        }
        assert!(Instant::now() < deadline, "{}", answer.body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };

    for answer in [first, again] {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.body["code"], "outcome_unknown", "{}", answer.body);
        assert_eq!(answer.body["retry_safe"], true, "{}", answer.body);
    }
    let kept = admin.query_one("select count(*) from token", &[]).await;
    assert_eq!(kept.unwrap().get::<_, i64>(0), 2, "{}", confirmed.body);
}

#[tokio::test]
async fn a_write_past_its_deadline_is_unknown_and_never_cancelled() {
    let (waiting, client) = WaitingForStandby::start(Duration::from_millis(500)).await;
    let admin = waiting.vault.database.connect().await;

    let started = Instant::now();
    let answer = client
        .post("/tokens", json!({"type": "token", "data": "unsure"}))
        .await;

    assert_eq!(answer.body["code"], "outcome_unknown");
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
        let kept = admin
            .query_one("select count(*) from token", &[])
            .await
            .unwrap();
        if kept.get::<_, i64>(0) == 2 {
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

#[tokio::test]
async fn an_absent_database_is_said_to_be_absent() {
    let server = TestServer::start().await;
    let database = TestDatabase::on(&server.postgres.url()).await;
    let vault = TestVault::start_with(database, |_| {}).await;
    let client = vault.revealing_client().await;
    let id = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await
        .id();

    drop(server);
    let answer = client.get(&format!("/tokens/{id}")).await;

    assert_eq!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        answer.body
    );
    assert_eq!(answer.body["code"], "database_unavailable");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn a_write_that_its_caller_left_blocks_nobody_else() {
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
    let mut locker = vault.database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.execute("lock table token in exclusive mode", &[])
        .await
        .unwrap();

    // More impatient writers than there are connections.
    for _ in 0..4 {
        let write = client.post("/tokens", json!({"type": "token", "data": 2}));
        let left = tokio::time::timeout(Duration::from_millis(200), write).await;
        assert!(left.is_err(), "the lock did not hold the write");
    }
    let found = client.get(&format!("/tokens/{id}")).await;

    assert_eq!(found.status, StatusCode::OK, "{}", found.body);
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_called_unavailable() {
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
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'cloakroom' and datname = current_database()";
    admin.batch_execute(cut).await.unwrap();

    // Once the node has noticed its lost connections, new ones are refused: they cannot write.
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let answer = client
            .post("/tokens", json!({"type": "token", "data": 1}))
            .await;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            answer.body
        );
        if answer.body["code"] == "database_unavailable" {
            break;
        }
        assert!(Instant::now() < deadline, "{}", answer.body);
    }
}

#[tokio::test]
async fn a_database_that_stands_still_makes_a_node_unready() {
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

    let standing = StandingStill::make(&server);
    wait_for(false).await;
    drop(standing);
    wait_for(true).await;
}

/// A server that does nothing until this is dropped, which a failing test does, too.
struct StandingStill<'a>(&'a TestServer);

impl<'a> StandingStill<'a> {
    fn make(server: &'a TestServer) -> Self {
        signal_postgres(server, "STOP");
        Self(server)
    }
}

impl Drop for StandingStill<'_> {
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
