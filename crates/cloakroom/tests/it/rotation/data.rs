//! Rotation of data keys, from the first step to the destruction of the old version.

use std::time::Duration;

use cloakroom::Node;
use cloakroom::access::Anchored;
use cloakroom::rotation::{self, Phase};
use cloakroom::tokens::{Scope, verify_histories};
use cloakroom::{access, access_change, audit, rate_limits};
use cloakroom_crypto::KeyPurpose;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

use super::{Fixture, HOLDER};

#[tokio::test]
async fn all_rows_are_encrypted_under_the_new_key_and_remain_readable() {
    let fixture = Fixture::create(450).await;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    fixture.assert_readable(&on_other).await;
    let before = fixture.client.get("/tokens?size=50").await.body;
    fixture.assert_all_under(1).await;

    fixture.rotate().await;

    fixture.assert_all_under(2).await;
    fixture.assert_readable(&fixture.client).await;
    fixture.assert_readable(&on_other).await;
    // Nothing that clients see has changed, and neither has what the audit log is compared with.
    assert_eq!(fixture.client.get("/tokens?size=50").await.body, before);
    let vault = &fixture.vault.vault;
    let report = verify_histories(vault, Scope::All, |_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let stale = access::verify_states(&vault.db, vault.keys.control()).await;
    assert_eq!(stale.unwrap(), Vec::<String>::new());
    let log = audit::verify(&vault.audit, None, |_| {}).await.unwrap();
    assert!(log.findings.is_empty(), "{:?}", log.findings);
}

#[tokio::test]
async fn the_old_key_opens_nothing_after_its_destruction() {
    let fixture = Fixture::create(3).await;
    let vault = &fixture.vault.vault;
    let copy = "create table copy as select * from tenant_key where purpose = 3";
    fixture.execute(copy).await;
    fixture.rotate().await;

    let (version, proof) = rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();

    assert_eq!(version, 1);
    assert!(proof.statement.contains("rows of token: 4\n"), "{proof:?}");
    assert!(proof.statement.contains("rows under the version: 0\n"));
    let stored = "select state, length(wrapped) from tenant_key where purpose = 3 and version = 1";
    let row = fixture.database.query_one(stored, &[]).await.unwrap();
    assert_eq!((row.get::<_, i16>(0), row.get::<_, i32>(1)), (4, 0));
    fixture.assert_readable(&fixture.client).await;
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );

    // The thief puts the key back, has it accepted, and makes every row name it.
    fixture
        .execute("update tenant_key set wrapped = copy.wrapped, state = 3 from copy
            where tenant_key.purpose = 3 and tenant_key.version = 1 and tenant_key.tenant_id = copy.tenant_id")
        .await;
    access_change::reanchor(vault, fixture.tenant.id, Anchored::Keys)
        .await
        .unwrap();
    fixture
        .execute("update token set sealed = set_byte(sealed, 5, 1)")
        .await;
    for id in &fixture.tokens {
        let read = fixture.client.get(&format!("/tokens/{id}")).await;
        assert_eq!(read.body["code"], "integrity_error", "{}", read.body);
    }
}

#[tokio::test]
async fn a_key_is_destroyed_only_after_an_authentic_proof() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    let retire = async || {
        let retired = rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data).await;
        retired
            .map(|(version, _)| version)
            .map_err(|error| error.to_string())
    };
    let early = retire().await.unwrap_err();
    assert!(early.contains("none was replaced"), "{early}");
    fixture.start().await;
    fixture.advance_until("rotation.page_written", 1).await;
    assert_eq!(fixture.phase().await, Phase::Rewriting);
    let early = retire().await.unwrap_err();
    assert!(early.contains("the scan is not complete"), "{early}");
    // SQL claims that the rotation is complete.
    fixture.execute("update key_rotation set phase = 6").await;
    let early = retire().await.unwrap_err();
    assert!(early.contains("the scan is not complete"), "{early}");
    fixture.execute("update key_rotation set phase = 4").await;
    fixture.advance_to(Phase::Proved).await;

    // The proof of another key.
    fixture
        .execute("update key_proof set statement = replace(statement, 'version: 1', 'version: 7')")
        .await;
    let forged = retire().await.unwrap_err();
    assert!(forged.contains("not authentic"), "{forged}");
    fixture
        .execute("update key_proof set statement = replace(statement, 'version: 7', 'version: 1')")
        .await;

    assert_eq!(retire().await, Ok(1));
    fixture.execute("delete from key_proof").await;
    let findings = rotation::verify_proofs(vault).await.unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].contains("destroyed without a proof"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn rows_that_were_skipped_are_found_by_the_proof() {
    let fixture = Fixture::create(5).await;
    fixture.start().await;
    fixture.advance_until("rotation.drained", 1).await;
    // SQL moves the position to the end of the last table.
    fixture
        .execute("update key_rotation set phase = 4, step = 7")
        .await;
    fixture.assert_all_under(1).await;

    fixture.advance_to(Phase::Proved).await;

    fixture.assert_all_under(2).await;
}

#[tokio::test]
async fn rows_that_do_not_decrypt_keep_the_old_key_alive_and_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let fixture = Fixture::create(3).await;
    let victim = &fixture.tokens[0];
    fixture
        .execute(&format!(
            "update token set metadata = '{{}}' where token_id = '{victim}'"
        ))
        .await;
    fixture.start().await;
    fixture.advance_to(Phase::Proving).await;

    for _ in 0..3 {
        rotation::work(&fixture.vault.vault, super::HOLDER)
            .await
            .unwrap();
    }

    assert_eq!(fixture.phase().await, Phase::Proving);
    let status = rotation::status(&fixture.vault.vault).await.unwrap();
    assert_eq!(status[0].rotation.unreadable, 1);
    let text = recorder.handle().render();
    let counted = text
        .lines()
        .find(|it| it.starts_with("cloakroom_integrity_errors_total"));
    assert_eq!(counted, Some("cloakroom_integrity_errors_total 1"));
    // Without the row, the rotation is completed. Scans are repeated once a minute.
    fixture
        .execute("update key_rotation set phase_at = now()")
        .await;
    fixture
        .execute(&format!("delete from token where token_id = '{victim}'"))
        .await;
    fixture.advance_to(Phase::Proved).await;
}

#[tokio::test]
async fn a_rotation_waits_until_all_nodes_know_the_key() {
    let fixture = Fixture::create(1).await;
    let other = fixture.vault.second_node().await;
    rate_limits::write_heartbeat(&other.vault.rate_limits)
        .await
        .unwrap();
    fixture.start().await;
    let node = &fixture.vault.vault;

    rotation::work(node, super::HOLDER).await.unwrap();
    assert_eq!(fixture.phase().await, Phase::Added);

    // The heartbeat of the other node acknowledges the new version, then its promotion.
    for expected in [Phase::Promoted, Phase::Proved] {
        rate_limits::write_heartbeat(&other.vault.rate_limits)
            .await
            .unwrap();
        for _ in 0..100 {
            rotation::work(node, super::HOLDER).await.unwrap();
            if fixture.phase().await == expected {
                break;
            }
        }
        assert_eq!(fixture.phase().await, expected);
    }
}

#[tokio::test]
async fn statements_with_an_older_snapshot_are_waited_for() {
    let fixture = Fixture::create(1).await;
    fixture.start().await;
    fixture.advance_until("rotation.before_change", 2).await;
    assert_eq!(fixture.phase().await, Phase::Promoted);
    let mut session = fixture.vault.database.connect().await;
    let transaction = session
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .start()
        .await
        .unwrap();
    transaction.query("select from token", &[]).await.unwrap();

    rotation::work(&fixture.vault.vault, super::HOLDER)
        .await
        .unwrap();
    assert_eq!(fixture.phase().await, Phase::Closed);

    transaction.commit().await.unwrap();
    fixture.advance_to(Phase::Proved).await;
}

/// A node that has stored a value under the old version, and commits late. Its session has no snapshot in between.
#[tokio::test]
async fn transactions_that_have_written_are_waited_for() {
    let fixture = Fixture::create(1).await;
    fixture.start().await;
    fixture.advance_until("rotation.before_change", 2).await;
    assert_eq!(fixture.phase().await, Phase::Promoted);
    let mut session = fixture.vault.database.connect().await;
    let transaction = session.transaction().await.unwrap();
    let written = transaction.execute("update token set sealed = sealed", &[]);
    assert!(written.await.unwrap() > 0);

    for _ in 0..5 {
        rotation::work(&fixture.vault.vault, super::HOLDER)
            .await
            .unwrap();
    }
    assert_eq!(fixture.phase().await, Phase::Closed);

    transaction.commit().await.unwrap();
    fixture.advance_to(Phase::Proved).await;
    fixture.assert_all_under(2).await;
}

#[tokio::test]
async fn stored_responses_keep_the_old_key_until_they_expire() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let create = async |key: &str| {
        let request = fixture
            .client
            .request(http::Method::POST, "/tokens")
            .header("bt-idempotency-key", key)
            .header("content-type", "application/json");
        let new = json!({"type": "token", "data": "once"});
        fixture
            .client
            .send(request.body(new.to_string()))
            .await
            .body
    };
    let first = create("one").await;
    rotation::start(vault, fixture.tenant.id, KeyPurpose::Reply, "tests")
        .await
        .unwrap();
    fixture.advance_to(Phase::Proving).await;

    assert_eq!(create("one").await["id"], first["id"]);
    create("two").await;
    let versions = fixture.versions("reply", "sealed").await;
    assert_eq!(versions, [(1, 1), (2, 1)]);
    rotation::work(vault, super::HOLDER).await.unwrap();
    assert_eq!(fixture.phase().await, Phase::Proving);
    fixture
        .execute("delete from reply where get_byte(sealed, 5) = 1")
        .await;
    fixture
        .execute("update key_rotation set phase_at = now()")
        .await;
    fixture.advance_to(Phase::Proved).await;
}

#[tokio::test]
async fn a_second_rotation_follows_the_first() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    fixture.start().await;
    let again = rotation::start(vault, fixture.tenant.id, KeyPurpose::Data, "tests").await;
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("being replaced already")
    );
    fixture.advance_to(Phase::Proved).await;
    let again = rotation::start(vault, fixture.tenant.id, KeyPurpose::Data, "tests").await;
    assert!(again.is_err());
    rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();

    assert_eq!(fixture.start().await, 3);
    // SQL deletes the progress: the operator starts the rotation again, with the same version.
    fixture
        .execute("delete from key_rotation where to_version = 3")
        .await;
    assert_eq!(fixture.start().await, 3);
    fixture.advance_until("rotation.before_change", 2).await;
    fixture
        .execute("delete from key_rotation where to_version = 3")
        .await;
    assert_eq!(fixture.start().await, 3);
    fixture.advance_to(Phase::Proved).await;

    fixture.assert_all_under(3).await;
    fixture.assert_readable(&fixture.client).await;
}

#[tokio::test]
async fn keys_near_the_end_of_their_period_are_rotated_if_switched_on() {
    let fixture = Fixture::create(3).await;
    let mut config = fixture.vault.configuration();
    let due = Duration::from_millis(1);
    (config.cryptoperiods.data, config.cryptoperiods.tenant_kek) = (due, due);
    let off = Node::open(config.clone()).await.unwrap();
    config.cryptoperiods.automatic = true;
    let on = Node::open(config).await.unwrap();

    let by_default = rotation::start_due(&off, HOLDER).await.unwrap();
    let started = rotation::start_due(&on, HOLDER).await.unwrap();
    fixture.advance_to(Phase::Proved).await;
    // The old version is not destroyed yet, so that this one is not replaced.
    let again = rotation::start_due(&on, HOLDER).await.unwrap();

    assert_eq!((by_default, started), (0, 2));
    assert_eq!(
        again, 1,
        "only the key-encryption key, which is destroyed at once"
    );
    fixture.assert_all_under(2).await;
    fixture.assert_readable(&fixture.client).await;
    let status = rotation::status(&fixture.vault.vault).await.unwrap();
    let requested_by = |it: &rotation::Progress| it.rotation.requested_by.clone();
    assert!(
        status
            .iter()
            .map(requested_by)
            .all(|by| by == "cryptoperiods.automatic"),
        "{status:?}"
    );
}
