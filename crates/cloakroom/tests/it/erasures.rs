//! Erasure ledgers: deletions are applied again after an older backup is restored.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::audit::{self, TrustedCheckpoints};
use cloakroom::erasures::{self, Applied, Counts, Error, Ledger, Limits};
use cloakroom_testkit::{Client, TestVault, everything, grants};
use http::StatusCode;
use serde_json::json;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn create_token(client: &Client, data: &str) -> String {
    let body = json!({"type": "token", "data": data});
    client.post("/tokens", body).await.id()
}

/// The text of a newly written ledger.
async fn write_ledger(vault: &TestVault) -> String {
    let ledger = erasures::write(&vault.vault, DAY, None).await.unwrap();
    let authority = vault.vault.keys.audit_authority();
    ledger.to_text(authority).await.unwrap()
}

async fn apply(vault: &TestVault, text: &str) -> Applied {
    let ledger = Ledger::parse(text, vault.vault.keys.audit_authority()).unwrap();
    let limits = Limits {
        tenants: 1,
        ..Limits::default()
    };
    erasures::apply(&vault.vault, &ledger, &limits, |_| {})
        .await
        .unwrap()
}

#[tokio::test]
async fn deletions_after_a_backup_are_applied_to_the_restored_database() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let retained = create_token(&client, "retained").await;
    let mut deleted = Vec::new();
    for number in 0..20 {
        deleted.push(create_token(&client, &format!("secret {number}")).await);
    }
    let named = json!({"id": "a name", "type": "token", "data": "first"});
    client.post("/tokens", named.clone()).await;
    let grant = || everything(Transform::Reveal);
    let private = ApplicationKind::Private;
    let deleted_application = vault.holder(&tenant, private, grant()).await;
    let deleted_key = vault.holder(&tenant, private, grant()).await;
    let backup = vault.database.dump(&[]);

    for id in deleted.iter().map(String::as_str).chain(["a name"]) {
        let response = client.delete(&format!("/tokens/{id}")).await;
        assert_eq!(response.status, StatusCode::NO_CONTENT);
    }
    // The id of the deleted token is reserved.
    let reused = client.post("/tokens", named.clone()).await;
    assert_eq!(reused.status, StatusCode::CONFLICT);
    let manager = grants(&[Permission::ApplicationDelete]);
    let manager = vault.holder(&tenant, ApplicationKind::Management, manager);
    let manager = vault.client_with(Some(&manager.await.key));
    for path in [
        format!("/applications/{}", deleted_application.application),
        format!(
            "/applications/{}/keys/{}",
            deleted_key.application, deleted_key.key_id
        ),
    ] {
        assert_eq!(manager.delete(&path).await.status, StatusCode::NO_CONTENT);
    }
    let ledger = write_ledger(&vault).await;

    let restored = vault.restored(&backup).await;
    let reader = client.at(&restored.base_url);
    let revoked =
        [deleted_application, deleted_key].map(|holder| restored.client_with(Some(&holder.key)));
    // Without the ledger, the restored database contains everything that was deleted.
    let resurrected = reader.get(&format!("/tokens/{}", deleted[0])).await;
    assert_eq!(resurrected.body["data"], "secret 0");
    assert_eq!(
        revoked[0].get(&format!("/tokens/{retained}")).await.status,
        StatusCode::OK
    );

    // 20 tokens, a token with a custom id, an application and two keys, one of them of that application.
    let applied = apply(&restored, &ledger).await;
    assert_eq!(applied.erased, 24, "{applied:?}");
    for id in deleted.iter().map(String::as_str).chain(["a name"]) {
        let response = reader.get(&format!("/tokens/{id}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{id}");
    }
    for client in revoked {
        let response = client.get(&format!("/tokens/{retained}")).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    }
    let response = reader.get(&format!("/tokens/{retained}")).await;
    assert_eq!(response.body["data"], "retained");
    let again = apply(&restored, &ledger).await;
    assert_eq!(
        again,
        Applied {
            erased: 0,
            absent: 24
        }
    );

    // In the original vault, a newer token with the same id is not erased.
    let database = vault.database.connect().await;
    let release = "delete from reserved_token_id";
    database.execute(release, &[]).await.unwrap();
    client.post("/tokens", named).await;
    assert_eq!(apply(&vault, &ledger).await.erased, 0);
    assert_eq!(client.get("/tokens/a name").await.body["data"], "first");
}

#[tokio::test]
async fn a_deleted_tenant_is_erased_from_the_restored_database() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let neighbor = vault.client(&other, everything(Transform::Reveal)).await;
    let (id, retained) = (
        create_token(&client, "a secret").await,
        create_token(&neighbor, "retained").await,
    );
    let manager = grants(&[Permission::TenantDelete]);
    let manager = vault.holder(&tenant, ApplicationKind::Management, manager);
    let manager = vault.client_with(Some(&manager.await.key));
    let backup = vault.database.dump(&[]);
    let response = manager.delete("/tenants/self").await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);
    let ledger = write_ledger(&vault).await;

    let restored = vault.restored(&backup).await;
    let path = format!("/tokens/{id}");
    let resurrected = client.at(&restored.base_url).get(&path).await;
    assert_eq!(resurrected.body["data"], "a secret");

    assert_eq!(
        apply(&restored, &ledger).await,
        Applied {
            erased: 1,
            absent: 0
        }
    );
    let response = client.at(&restored.base_url).get(&path).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
    // The tenant keys are destroyed, so none of its rows can be decrypted.
    let database = restored.database.connect().await;
    let sql = "select count(*) from tenant_key where tenant_id = $1 and wrapped <> ''";
    let keys: i64 = database
        .query_one(sql, &[&tenant.id.number])
        .await
        .unwrap()
        .get(0);
    assert_eq!(keys, 0);
    let response = neighbor
        .at(&restored.base_url)
        .get(&format!("/tokens/{retained}"))
        .await;
    assert_eq!(response.body["data"], "retained");
}

#[tokio::test]
async fn modified_truncated_and_foreign_ledgers_are_rejected() {
    let (vault, other) = (TestVault::start().await, TestVault::start().await);
    let client = vault.revealing_client().await;
    for data in ["one", "two"] {
        let id = create_token(&client, data).await;
        client.delete(&format!("/tokens/{id}")).await;
    }
    let text = write_ledger(&vault).await;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3);
    let key = vault.vault.keys.audit_authority();

    assert!(Ledger::parse(&text, key).is_ok());
    for changed in [
        lines[1..].concat(),
        [lines[1], lines[0], lines[2]].concat(),
        text.replace("\"token\"", "\"tenant\""),
        text.replacen("\"from\":\"20", "\"from\":\"19", 1),
    ] {
        assert_ne!(changed, text);
        let rejected = Ledger::parse(&changed, key);
        assert!(
            matches!(rejected, Err(Error::InvalidSignature)),
            "{changed}"
        );
    }
    for cut in ["", lines[0], &text[..text.len() - 20]] {
        let rejected = Ledger::parse(cut, key);
        assert!(matches!(rejected, Err(Error::Unreadable(_))), "{cut}");
    }
    let foreign = Ledger::parse(&text, other.vault.keys.audit_authority());
    assert!(matches!(foreign, Err(Error::InvalidSignature)));
}

/// Inserts a forged deletion into the audit log, as a holder of the service's database role can.
async fn forge_deletion(vault: &TestVault, kind: i16, id: &str, chain: i32) {
    let sql = "insert into log (slot, created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id,
            operation, outcome, origin, trace_id, chain, seq, commit)
        select slot, now(), tenant_id, actor_kind, actor_id, key_id, $1, $2, 4, 1, origin, trace_id, $3, 1000000,
            decode(repeat('00', 68), 'hex')
        from log
        limit 1";
    let database = vault.database.connect().await;
    let inserted = database.execute(sql, &[&kind, &id, &chain]).await.unwrap();
    assert_eq!(inserted, 1);
}

#[tokio::test]
async fn no_ledger_is_written_from_an_audit_log_that_does_not_verify() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let (live, deleted) = (
        create_token(&client, "live").await,
        create_token(&client, "gone").await,
    );
    client.delete(&format!("/tokens/{deleted}")).await;
    let tenant = client.get(&format!("/tokens/{live}")).await.body["tenant_id"].clone();
    assert_eq!(write_ledger(&vault).await.lines().count(), 2);
    let database = vault.database.connect().await;

    for (kind, id, chain) in [
        (1, live.as_str(), 1001),
        (1, live.as_str(), 999),
        (7, tenant.as_str().unwrap(), 1001),
    ] {
        forge_deletion(&vault, kind, id, chain).await;
        let rejected = erasures::write(&vault.vault, DAY, None).await;
        let Err(Error::Unverified { findings: 1.., .. }) = rejected else {
            panic!("{rejected:?}");
        };
        let sql = "delete from log where seq = 1000000";
        database.execute(sql, &[]).await.unwrap();
    }
    assert_eq!(write_ledger(&vault).await.lines().count(), 2);

    // Deletions that were removed from the log are detected as well.
    let sql = "delete from log where operation = 4";
    assert_eq!(database.execute(sql, &[]).await.unwrap(), 1);
    create_token(&client, "later").await;
    let rejected = erasures::write(&vault.vault, DAY, None).await;
    assert!(matches!(rejected, Err(Error::Unverified { .. })));
    let response = client.get(&format!("/tokens/{live}")).await;
    assert_eq!(response.body["data"], "live");
}

/// Checkpoints of a sink detect deletions that were removed from the audit log together with its checkpoints.
#[tokio::test]
async fn checkpoints_of_a_sink_detect_removed_deletions() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let deleted = create_token(&client, "deleted").await;
    client.delete(&format!("/tokens/{deleted}")).await;
    vault.vault.audit.close().await;
    let verified = audit::verify(&vault.vault.audit, None, |_| {})
        .await
        .unwrap();
    let shipped = verified.newest.unwrap();
    let trusted = || Some(TrustedCheckpoints::new([shipped.clone()].into_iter()).unwrap());
    let ledger = erasures::write(&vault.vault, DAY, trusted()).await;
    assert_eq!(ledger.unwrap().erasures.len(), 1);

    let database = vault.database.connect().await;
    let roll_back = "delete from log; delete from log_key; delete from log_checkpoint";
    database.batch_execute(roll_back).await.unwrap();

    let without = erasures::write(&vault.vault, DAY, None).await.unwrap();
    assert_eq!(without.erasures, [], "the database alone does not show it");
    let rejected = erasures::write(&vault.vault, DAY, trusted()).await;
    assert!(matches!(rejected, Err(Error::Unverified { .. })));
}

#[tokio::test]
async fn a_ledger_over_the_limits_erases_nothing() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let neighbor = vault.client(&other, everything(Transform::Reveal)).await;
    let (id, theirs) = (
        create_token(&client, "a").await,
        create_token(&neighbor, "b").await,
    );
    let manager = grants(&[Permission::TenantDelete]);
    let manager = vault.holder(&other, ApplicationKind::Management, manager);
    let manager = vault.client_with(Some(&manager.await.key));
    let backup = vault.database.dump(&[]);
    client.delete(&format!("/tokens/{id}")).await;
    manager.delete("/tenants/self").await;
    let ledger = write_ledger(&vault).await;

    let restored = vault.restored(&backup).await;
    let ledger = Ledger::parse(&ledger, restored.vault.keys.audit_authority()).unwrap();
    let plan = erasures::plan(&restored.vault, &ledger).await.unwrap();
    assert_eq!(
        plan.counts,
        Counts {
            tokens: 1,
            tenants: 1,
            ..Counts::default()
        }
    );
    for (tokens, tenants, expected) in [
        (1, 0, "--max-tenants 1"),
        (0, 1, "--max-tokens 1"),
        (0, 0, "--max-tokens 1 --max-tenants 1"),
    ] {
        let limits = Limits {
            tokens,
            tenants,
            ..Limits::default()
        };
        let rejected = erasures::apply(&restored.vault, &ledger, &limits, |_| {}).await;
        let Err(Error::OverLimit { options, .. }) = rejected else {
            panic!("{rejected:?}");
        };
        assert_eq!(options, expected);
    }
    for (client, id) in [(&client, &id), (&neighbor, &theirs)] {
        let response = client
            .at(&restored.base_url)
            .get(&format!("/tokens/{id}"))
            .await;
        assert_eq!(response.status, StatusCode::OK);
    }
    assert_eq!(
        erasures::plan(&restored.vault, &ledger)
            .await
            .unwrap()
            .absent,
        0
    );
}
