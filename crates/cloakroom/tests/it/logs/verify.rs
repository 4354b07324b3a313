//! Detection of tampering.

use cloakroom::audit::{self, Anchor, EntityKind, Entry, Finding, Operation};

use super::note;
use crate::support::TestVault;

/// I21: verification detects every manipulation of log entries by SQL.
/// Covers 19.7.
#[tokio::test]
async fn tampering_is_detected() {
    type IsExpected = fn(&Finding) -> bool;
    let cases: [(&str, IsExpected); 13] = [
        ("delete from log where seq = 5", |it| matches!(it, Finding::Missing { from: 5, to: 5, .. })),
        ("delete from log where seq = 1", |it| matches!(it, Finding::Missing { from: 1, to: 1, .. })),
        ("delete from log where seq >= 8", |it| matches!(it, Finding::Missing { from: 8, .. })),
        ("delete from log", |it| matches!(it, Finding::Missing { from: 1, .. })),
        ("update log set entity_id = 'x' where seq = 5", |it| matches!(it, Finding::Altered { seq: 5, .. })),
        ("update log set actor_id = gen_random_uuid() where seq = 5", |it| matches!(it, Finding::Altered { seq: 5, .. })),
        ("update log set outcome = 3 where seq = 5", |it| matches!(it, Finding::Altered { seq: 5, .. })),
        ("update log set created_at = created_at - interval '1 microsecond' where seq = 5", |it| matches!(it, Finding::Altered { seq: 5, .. })),
        ("update log set seq = case seq when 5 then 6 else 5 end where seq in (5, 6)", |it| matches!(it, Finding::Altered { seq: 5, .. })),
        ("insert into log select slot, created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id,
            operation, outcome, origin, trace_id, chain, 1000, mac from log where seq = 5", |it| matches!(it, Finding::Missing { to: 999, .. })),
        ("update log_chain set head_seq = 2", |it| matches!(it, Finding::AlteredChain { .. })),
        ("update log_chain set chain = chain + 1", |it| matches!(it, Finding::MissingChain { .. })),
        ("update log set chain = 77 where seq = 5", |it| matches!(it, Finding::Stray { seq: 5, .. })),
    ];
    for (sql, is_expected) in cases {
        let vault = TestVault::start().await;
        let client = vault.revealing_client().await;
        for index in 0..10 {
            client.post("/tokens", note(&index.to_string())).await;
        }
        vault.vault.audit.close().await;
        let untouched = audit::verify(&vault.vault.audit, None, |_| {})
            .await
            .unwrap();
        assert_eq!(untouched.findings, [], "{sql}");
        assert!(untouched.records >= 10, "{}", untouched.records);

        let database = vault.database.connect().await;
        database.batch_execute(sql).await.unwrap();
        let found = audit::verify(&vault.vault.audit, None, |_| {})
            .await
            .unwrap();

        assert!(
            found.findings.iter().any(is_expected),
            "{sql}: {:?}",
            found.findings
        );
    }
}

/// An entry that was signed for a failed change is as authentic as the one stored in its place. Only the entries
/// around it reveal it.
#[tokio::test]
async fn entries_of_discarded_changes_are_detected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let sign_and_discard = async || {
        let mut writer = vault.vault.audit.chain_writer().await.unwrap();
        let entry = Entry::by_system(1, Operation::Delete, EntityKind::Token, "a");
        let signed = writer.append(&[entry]);
        writer.discard();
        signed
    };
    let first = sign_and_discard().await;
    client.post("/tokens", note("a")).await;
    client.post("/tokens", note("b")).await;
    let last = sign_and_discard().await;
    vault.vault.audit.close().await;
    let database = vault.database.connect().await;
    let verify = async || {
        let verified = audit::verify(&vault.vault.audit, None, |_| {}).await;
        verified.unwrap().findings
    };
    assert_eq!(verify().await, []);

    let add = "insert into log select entry.* from unnest($1::text[]::log[]) as entry";
    let remove = "delete from log using unnest($1::text[]::log[]) as entry
        where (log.chain, log.seq) = (entry.chain, entry.seq)";
    database.execute(add, &[&last]).await.unwrap();
    let added = verify().await;
    database.execute(remove, &[&last]).await.unwrap();
    let replaced = database.execute(remove, &[&first]).await.unwrap();
    database.execute(add, &[&first]).await.unwrap();
    let exchanged = verify().await;

    assert!(matches!(added[..], [Finding::Stray { .. }]), "{added:?}");
    assert_eq!(replaced, 1);
    assert!(
        matches!(exchanged[..], [Finding::Altered { .. }]),
        "{exchanged:?}"
    );
}

/// Truncation together with every trace of it in the database is detected against an anchor.
/// Covers 19.8.
#[tokio::test]
async fn anchors_detect_complete_truncation() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    for index in 0..5 {
        client.post("/tokens", note(&index.to_string())).await;
    }
    let database = vault.database.connect().await;
    database
        .batch_execute("create table old_heads as select * from log_chain")
        .await
        .unwrap();
    vault.vault.audit.close().await;
    let anchor = audit::verify(&vault.vault.audit, None, |_| {})
        .await
        .unwrap()
        .anchor;
    let text = serde_json::to_string(&anchor).unwrap();
    let anchor: Anchor = serde_json::from_str(&text).unwrap();
    let verify = async || {
        audit::verify(&vault.vault.audit, Some(&anchor), |_| {})
            .await
            .unwrap()
    };
    assert_eq!(verify().await.findings, []);

    // Restores an older chain row and removes the entries after it.
    let roll_back = "delete from log;
        delete from log_chain;
        insert into log_chain select * from old_heads";
    database.batch_execute(roll_back).await.unwrap();
    let without = audit::verify(&vault.vault.audit, None, |_| {})
        .await
        .unwrap();
    assert_eq!(without.findings, [], "undetectable from the database alone");
    assert!(matches!(
        verify().await.findings[0],
        Finding::Missing { from: 1, .. }
    ));

    database
        .batch_execute("delete from log_chain")
        .await
        .unwrap();
    assert!(matches!(
        verify().await.findings[0],
        Finding::MissingDay { .. }
    ));
}
