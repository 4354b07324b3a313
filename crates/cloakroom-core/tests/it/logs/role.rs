//! The rights of the serving role, and nodes that refuse a log that was rolled back.

use cloakroom::admin::Readiness;
use cloakroom::audit::{self, CheckpointError, Finding, Halt};
use cloakroom::config::{Database, Secret};
use cloakroom::{jobs, storage};
use cloakroom_testkit::TestVault;
use http::StatusCode;
use tokio_postgres::error::SqlState;

use super::note;

/// F9: the role of nodes can neither change nor remove anything of the audit log, and removes no young days.
#[tokio::test]
async fn the_serving_role_can_only_append() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client.post("/tokens", note("a")).await;
    vault.vault.audit.close().await;
    let role = format!("serving_{}", cloakroom::ids::new_uuid().simple());
    let database = vault.database.connect().await;
    database
        .batch_execute(&format!("create role {role}"))
        .await
        .unwrap();
    let owner = Database {
        url: Some(Secret::new(&vault.database.url)),
        ..Database::default()
    };
    let owner = storage::connect_once(&owner).await.unwrap();
    storage::grant(&owner, &role).await.unwrap();
    let slot = "select slot from log limit 1";
    let slot: i16 = database.query_one(slot, &[]).await.unwrap().get(0);
    database
        .batch_execute(&format!("set role {role}"))
        .await
        .unwrap();

    let rejected = forbidden_statements(slot);
    for sql in &rejected {
        let error = database.batch_execute(sql).await.expect_err(sql);
        assert_eq!(
            error.code(),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{sql}"
        );
    }
    for requested in [-1_000, 0, 1, 90] {
        let sql = "select drop_log_days($1)";
        let row = database.query_one(sql, &[&requested]).await;
        let dropped: Vec<i32> = row.unwrap().get(0);
        assert_eq!(dropped, [] as [i32; 0], "{requested}");
    }
    let insert = "insert into log select * from log limit 1";
    database.batch_execute(insert).await.unwrap();
    let clean_up = format!("reset role; drop owned by {role}; drop role {role}");
    database.batch_execute(&clean_up).await.unwrap();
    let found = audit::verify(&vault.vault.audit, None, |_| {}).await;
    assert!(matches!(
        found.unwrap().findings[..],
        [Finding::Forked { .. }]
    ));
}

/// Statements that would change or remove something of the audit log.
fn forbidden_statements(slot: i16) -> Vec<String> {
    let mut rejected = Vec::new();
    let tables = [
        "log",
        &format!("log_{slot}"),
        "log_key",
        "log_checkpoint",
        "log_retention",
    ];
    for table in tables {
        let column = match table {
            "log_key" => "number = number",
            "log_checkpoint" => "note = note",
            "log_retention" => "keep_days = 1",
            _ => "seq = seq",
        };
        rejected.push(format!("update {table} set {column}"));
        rejected.push(format!("delete from {table}"));
        rejected.push(format!("truncate {table}"));
        rejected.push(format!("drop table {table}"));
        rejected.push(format!("alter table {table} disable trigger all"));
    }
    rejected.push("insert into log_retention (only_row, keep_days) values (true, 1)".to_owned());
    rejected.push("create or replace function drop_log_days(requested integer) returns integer[] language sql as 'select null'".to_owned());
    rejected
}

/// A node that has seen a newer checkpoint than the database has rejects everything that must be logged.
#[tokio::test]
async fn a_node_stops_when_the_log_is_rolled_back() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = client.post("/tokens", note("a")).await.id();
    vault.vault.audit.checkpoint().await.unwrap();
    client.post("/tokens", note("b")).await;
    vault.vault.audit.checkpoint().await.unwrap();
    let database = vault.database.connect().await;
    let roll_back = "delete from log_checkpoint where number = 2";
    assert_eq!(database.execute(roll_back, &[]).await.unwrap(), 1);

    let halted = vault.vault.audit.checkpoint().await;
    assert!(matches!(
        halted,
        Err(CheckpointError::Halted(Halt::RolledBack))
    ));
    let created = client.post("/tokens", note("c")).await;
    let revealed = client.get(&format!("/tokens/{id}")).await;
    let readiness = Readiness::new(jobs::CHECKS);
    let _jobs = jobs::start(&vault.vault, &readiness);
    let reason = loop {
        match readiness.snapshot().checks.get("audit") {
            Some(Err(reason)) if reason != "not checked yet" => break reason.clone(),
            _ => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };

    assert_eq!(created.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(revealed.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(revealed.body["code"], "audit_unavailable");
    assert_eq!(reason, Halt::RolledBack.reason());
}

/// A checkpoint that SQL inserted stops nodes instead of becoming part of the log.
#[tokio::test]
async fn a_node_does_not_continue_from_a_forged_checkpoint() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    vault.vault.audit.checkpoint().await.unwrap();
    let database = vault.database.connect().await;
    let forge = "insert into log_checkpoint
        select number + 1, day, replace(note, E'\\n1\\n', E'\\n2\\n'), state from log_checkpoint";
    assert_eq!(database.execute(forge, &[]).await.unwrap(), 1);

    let halted = vault.vault.audit.checkpoint().await;

    assert!(matches!(halted, Err(CheckpointError::Halted(Halt::Forged))));
    let created = client.post("/tokens", note("c")).await;
    assert_eq!(created.status, StatusCode::SERVICE_UNAVAILABLE);
}
