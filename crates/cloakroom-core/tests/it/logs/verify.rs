//! Detection of tampering.

use cloakroom::audit::{
    self, EntityKind, Entry, Finding, Operation, TrustedCheckpoints, VerificationReport,
};
use cloakroom_testkit::TestVault;
use serde_json::json;

use super::note;

/// Tables of the audit log.
const TABLES: [&str; 3] = ["log", "log_key", "log_checkpoint"];

async fn verify(vault: &TestVault, trusted: Option<&str>) -> VerificationReport {
    let trusted = trusted.map(|lines| {
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        TrustedCheckpoints::new(lines.into_iter()).unwrap()
    });
    audit::verify(&vault.vault.audit, trusted, |_| {})
        .await
        .unwrap()
}

async fn findings(vault: &TestVault) -> Vec<Finding> {
    verify(vault, None).await.findings
}

/// A vault with at least ten batches in one chain, one of several entries, and three checkpoints.
async fn vault_with_entries() -> TestVault {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    vault.vault.audit.checkpoint().await.unwrap();
    for index in 0..10 {
        client.post("/tokens", note(&index.to_string())).await;
    }
    vault.vault.audit.close().await;
    client.get("/v2/tokens").await;
    vault.vault.audit.close().await;
    vault
}

async fn save(vault: &TestVault) {
    let database = vault.database.connect().await;
    for table in TABLES {
        let sql = format!(
            "drop table if exists saved_{table}; create table saved_{table} as select * from {table}"
        );
        database.batch_execute(&sql).await.unwrap();
    }
}

async fn restore(vault: &TestVault) {
    let database = vault.database.connect().await;
    for table in TABLES {
        let sql = format!("delete from {table}; insert into {table} select * from saved_{table}");
        database.batch_execute(&sql).await.unwrap();
    }
}

type IsExpected = fn(&Finding) -> bool;

async fn assert_detected(vault: &TestVault, cases: &[(&str, IsExpected)]) {
    assert_eq!(findings(vault).await, []);
    save(vault).await;
    let database = vault.database.connect().await;
    for (sql, is_expected) in cases {
        database.batch_execute(sql).await.unwrap();
        let found = findings(vault).await;
        assert!(found.iter().any(is_expected), "{sql}: {found:?}");
        restore(vault).await;
        assert_eq!(findings(vault).await, [], "after {sql}");
    }
}

/// I21: verification detects every manipulation of log entries by SQL.
/// Covers 19.7.
#[tokio::test]
async fn tampering_is_detected() {
    let vault = vault_with_entries().await;
    let cases: [(&str, IsExpected); 27] = [
        ("delete from log where chain = 1001 and seq = 5", |it| matches!(it, Finding::Missing { from: 5, to: 5, .. })),
        ("delete from log where chain = 1001 and seq = 1", |it| matches!(it, Finding::Missing { from: 1, to: 1, .. })),
        ("delete from log where chain = 1001 and seq >= 8", |it| matches!(it, Finding::Missing { from: 8, .. })),
        ("delete from log where chain = 1002 and commit is not null", |it| matches!(it, Finding::Missing { .. })),
        ("delete from log where chain = 1001", |it| matches!(it, Finding::MissingChain { .. })),
        ("delete from log", |it| matches!(it, Finding::MissingDay { .. })),
        ("delete from log; delete from log_key", |it| matches!(it, Finding::MissingDay { .. })),
        ("update log set entity_id = 'x' where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set entity_kind = 3 where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set tenant_id = 77 where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set actor_id = gen_random_uuid() where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set actor_kind = 2 where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set key_id = gen_random_uuid() where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set operation = 2 where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set outcome = 3 where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set origin = '' where origin is null", |it| matches!(it, Finding::Altered { .. })),
        ("update log set origin = '192.0.2.1' where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set trace_id = 'x' where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set created_at = created_at - interval '1 microsecond' where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set commit = set_byte(commit, 20, 255 - get_byte(commit, 20)) where seq = 5", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set commit = null where chain = 1001 and seq = 5", |it| matches!(it, Finding::Altered { from: 5, to: 6, .. })),
        ("update log set seq = case seq when 5 then 6 else 5 end where seq in (5, 6)", |it| matches!(it, Finding::Altered { from: 5, .. })),
        ("update log set slot = (slot + 1) % 100 where chain = 1001 and seq = 5", |it| matches!(it, Finding::Stray { seq: 5, .. })),
        ("update log set chain = 77077 where chain = 1001 and seq = 5", |it| matches!(it, Finding::Stray { seq: 5, .. })),
        ("update log set chain = 1009 where chain = 1001 and seq = 5", |it| matches!(it, Finding::Missing { from: 1, to: 4, .. })),
        ("insert into log select * from saved_log where seq = 5", |it| matches!(it, Finding::Forked { seq: 5, .. })),
        ("insert into log select slot, created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id,
            operation, outcome, origin, trace_id, chain, 1000, commit from log where seq = 5", |it| matches!(it, Finding::Stray { seq: 1000, .. })),
    ];

    assert_detected(&vault, &cases).await;
}

/// Keys and checkpoints are as protected as entries.
#[tokio::test]
async fn tampering_with_keys_and_checkpoints_is_detected() {
    let vault = vault_with_entries().await;
    let cases: [(&str, IsExpected); 12] = [
        ("delete from log_key", |it| {
            matches!(it, Finding::UnknownKey { .. })
        }),
        ("update log_key set public_key = sha256(public_key)", |it| {
            matches!(it, Finding::UnknownKey { .. })
        }),
        ("update log_key set node = gen_random_uuid()", |it| {
            matches!(it, Finding::UnknownKey { .. })
        }),
        (
            "insert into log_key select day, 9, node, public_key, certificate from log_key",
            |it| matches!(it, Finding::UnknownKey { number: 9, .. }),
        ),
        ("delete from log_checkpoint where number = 1", |it| {
            matches!(it, Finding::MissingCheckpoints { from: 1, to: 1 })
        }),
        ("delete from log_checkpoint where number = 2", |it| {
            matches!(it, Finding::MissingCheckpoints { from: 2, to: 2 })
        }),
        (
            "update log_checkpoint set note = replace(note, 'time 2', 'time 1') where number = 2",
            |it| matches!(it, Finding::AlteredCheckpoint { number: 2 }),
        ),
        (
            "update log_checkpoint set note = (select note from saved_log_checkpoint where number = 1) where number = 2",
            |it| matches!(it, Finding::AlteredCheckpoint { number: 2 }),
        ),
        (
            "update log_checkpoint set state = set_byte(state, 12, 255 - get_byte(state, 12)) where number = 2",
            |it| matches!(it, Finding::AlteredCheckpoint { number: 2 }),
        ),
        (
            "update log_checkpoint set state = null where number = 2",
            |it| matches!(it, Finding::AlteredCheckpoint { number: 2 }),
        ),
        (
            "update log_checkpoint set number = 9 where number = 3",
            |it| matches!(it, Finding::MissingCheckpoints { from: 3, to: 8 }),
        ),
        (
            "insert into log_checkpoint select 4, day, note, state from log_checkpoint where number = 3",
            |it| matches!(it, Finding::AlteredCheckpoint { number: 4 }),
        ),
    ];

    assert_detected(&vault, &cases).await;
}

/// Right after the first entries there is no checkpoint, and entries are verified all the same.
#[tokio::test]
async fn a_log_without_checkpoints_is_verified() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    assert!(verify(&vault, None).await.records > 0);
    assert_eq!(findings(&vault).await, []);
    for index in 0..3 {
        client.post("/tokens", note(&index.to_string())).await;
    }
    client.get("/v2/tokens").await;
    assert_eq!(findings(&vault).await, []);

    let database = vault.database.connect().await;
    let sql = "delete from log where seq = (select max(seq) from log)";
    database.batch_execute(sql).await.unwrap();
    let found = findings(&vault).await;
    assert!(
        matches!(found[..], [Finding::Truncated { .. }]),
        "{found:?}"
    );
}

async fn sign_and_discard(vault: &TestVault) -> Vec<String> {
    let mut writer = vault.vault.audit.chain_writer().await.unwrap();
    let entry = Entry::by_system(1, Operation::Delete, EntityKind::Token, "a");
    let signed = writer.append(&[entry]);
    writer.discard();
    signed
}

/// An entry that was signed for a failed change is as authentic as the one stored in its place. Only the entries and
/// checkpoints around it reveal it.
#[tokio::test]
async fn entries_of_discarded_changes_are_detected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let first = sign_and_discard(&vault).await;
    client.post("/tokens", note("a")).await;
    let second = sign_and_discard(&vault).await;
    client.post("/tokens", note("b")).await;
    let last = sign_and_discard(&vault).await;
    vault.vault.audit.close().await;
    assert_eq!(findings(&vault).await, []);
    save(&vault).await;
    let database = vault.database.connect().await;
    let add = "insert into log select entry.* from unnest($1::text[]::log[]) as entry";
    let remove = "delete from log using unnest($1::text[]::log[]) as entry
        where (log.chain, log.seq) = (entry.chain, entry.seq)";

    database.execute(add, &[&last]).await.unwrap();
    let added = findings(&vault).await;
    restore(&vault).await;
    assert_eq!(database.execute(remove, &[&first]).await.unwrap(), 1);
    database.execute(add, &[&first]).await.unwrap();
    let exchanged = findings(&vault).await;
    restore(&vault).await;
    assert_eq!(database.execute(remove, &[&second]).await.unwrap(), 1);
    database.execute(add, &[&second]).await.unwrap();
    let forked = findings(&vault).await;

    assert!(matches!(added[..], [Finding::Stray { .. }]), "{added:?}");
    assert!(
        matches!(exchanged[..], [Finding::Altered { .. }]),
        "{exchanged:?}"
    );
    assert!(matches!(forked[..], [Finding::Forked { .. }]), "{forked:?}");
}

/// The whole database, rolled back to a state that was genuine once, is detected with the checkpoints of a sink.
/// Covers 19.8.
#[tokio::test]
async fn checkpoints_of_a_sink_detect_a_rollback() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    vault.vault.audit.close().await;
    let mut shipped = verify(&vault, None).await.newest.unwrap();
    save(&vault).await;
    client.post("/tokens", note("a")).await;
    vault.vault.audit.close().await;
    shipped.push('\n');
    shipped.push_str(&verify(&vault, None).await.newest.unwrap());
    let compared = verify(&vault, Some(&shipped)).await;
    assert_eq!((compared.findings, compared.compared), (vec![], 2));

    restore(&vault).await;

    assert_eq!(
        findings(&vault).await,
        [],
        "the database alone is consistent"
    );
    let found = verify(&vault, Some(&shipped)).await.findings;
    let expected = Finding::RolledBack {
        newest: 1,
        shipped: 2,
    };
    assert_eq!(found, [expected]);

    // Another node continues from the old state.
    let other = vault.second_node().await;
    let again = client.at(&other.base_url);
    again
        .post("/tokens", json!({"type": "token", "data": "b"}))
        .await;
    other.vault.audit.close().await;
    assert_eq!(findings(&vault).await, []);
    let found = verify(&vault, Some(&shipped)).await.findings;
    assert_eq!(found, [Finding::DifferentFromSink { number: 2 }]);
}
