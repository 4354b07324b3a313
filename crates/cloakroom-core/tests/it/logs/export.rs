//! Exports, which anyone can verify with the public key alone.

use cloakroom::audit::{
    self, ALL_DAYS, Finding, TrustedCheckpoints, VerificationReport, read_records, verify_export,
};
use cloakroom::sinks::{self, Sink};
use cloakroom_testkit::TestVault;

use super::note;

async fn exported(vault: &TestVault) -> String {
    let mut text = Vec::new();
    let audit = &vault.vault.audit;
    audit::export(audit, ALL_DAYS, &mut text, |_| {})
        .await
        .unwrap();
    String::from_utf8(text).unwrap()
}

fn verify(text: &str, key: [u8; 32]) -> VerificationReport {
    let records = read_records(text.as_bytes());
    verify_export(records, vec![key.into()], ALL_DAYS, None, |_| {}).unwrap()
}

#[tokio::test]
async fn exports_are_verified_with_the_public_key_alone() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    for index in 0..5 {
        client.post("/tokens", note(&index.to_string())).await;
    }
    client.get("/v2/tokens").await;
    vault.vault.audit.close().await;
    let text = exported(&vault).await;
    let key = vault.vault.keys.audit_authority().public_key();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();

    let intact = verify(&text, key);
    let online = audit::verify(&vault.vault.audit, None, |_| {})
        .await
        .unwrap();
    assert_eq!(intact.findings, []);
    assert!(intact.records > 5 && intact.checkpoints > 0);
    assert_eq!(
        (intact.records, intact.chains),
        (online.records, online.chains)
    );

    // Every line matters, except those that start a partition without entries.
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("{\"slot\"") {
            continue;
        }
        let without = [&lines[..index], &lines[index + 1..]].concat().concat();
        let is_last_checkpoint = line.starts_with("{\"checkpoint\"");
        let found = verify(&without, key).findings;
        assert!(is_last_checkpoint || !found.is_empty(), "{line}");
    }
    let entries: Vec<usize> = (0..lines.len())
        .filter(|index| lines[*index].starts_with("{\"entry\""))
        .collect();
    let mut swapped = lines.clone();
    swapped.swap(entries[1], entries[2]);
    assert_ne!(verify(&swapped.concat(), key).findings, []);
    let other = TestVault::start().await;
    let other_key = other.vault.keys.audit_authority().public_key();
    let found = verify(&text, other_key).findings;
    assert!(matches!(found[0], Finding::AlteredCheckpoint { .. }));

    let malformed = format!("{text}x\n");
    let records = read_records(malformed.as_bytes());
    assert!(verify_export(records, vec![key.into()], ALL_DAYS, None, |_| {}).is_err());
}

/// Checkpoints of a file sink are complete and in order, also after a restart, and detect a rollback.
#[tokio::test]
async fn a_file_receives_every_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoints.jsonl");
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| config.audit.sink_file = Some(path.clone()))
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let holder = cloakroom::ids::new_uuid();
    for round in 1..=3_i64 {
        client.post("/tokens", note(&round.to_string())).await;
        node.vault.audit.checkpoint().await.unwrap();
        sinks::ship_all(&node.vault, Sink::File, holder)
            .await
            .unwrap();
        assert_eq!(sinks::last_number(&path).unwrap(), round);
        assert_eq!(sinks::waiting(&node.vault, Sink::File).await.unwrap(), 0);
    }
    let verify = async || {
        let trusted = TrustedCheckpoints::open(&path).unwrap();
        let verified = audit::verify(&node.vault.audit, Some(trusted), |_| {}).await;
        verified.unwrap()
    };
    let intact = verify().await;
    assert_eq!((intact.findings, intact.compared), (vec![], 3));

    let database = vault.database.connect().await;
    let sql = "delete from log_checkpoint where number = 3";
    database.batch_execute(sql).await.unwrap();

    let found = verify().await.findings;
    let rolled_back = Finding::RolledBack {
        newest: 2,
        shipped: 3,
    };
    assert!(found.contains(&rolled_back), "{found:?}");
}
