//! Requesting, confirming and canceling a tenant deletion.

use std::time::Duration;

use cloakroom::access::Transform;
use cloakroom::{ids, jobs, tenants};
use cloakroom_testkit::{Client, TestDatabase, TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::{SELF, keys_are_destroyed, manager};

/// Log entries about deletion, oldest first.
async fn logged_deletions(client: &Client) -> Vec<String> {
    let logs = client.get("/logs?entity_type=tenant&size=100").await;
    let entries = logs.items().iter().rev().map(|record| {
        let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        (word("operation"), word("message"))
    });
    entries
        .filter(|(operation, _)| operation.contains("delet"))
        .map(|(operation, message)| format!("{operation}: {message}"))
        .collect()
}

/// F16.
///
/// Covers 14.17, 14.22, 14.23.
#[tokio::test]
async fn deletion_requires_a_second_application_and_a_delay() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.tenants.deletion_delay = Duration::from_secs(2);
    })
    .await;
    let (tenant, other_tenant) = (vault.tenant().await, vault.tenant().await);
    let first = manager(&vault, &tenant).await;
    let second = manager(&vault, &tenant).await;
    let other_manager = manager(&vault, &other_tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let sweep = async || {
        let database = vault.database.connect().await;
        database.execute("delete from lease", &[]).await.unwrap();
        let swept = jobs::sweep_once(&vault.vault, ids::new_uuid()).await;
        swept.unwrap();
    };

    assert_eq!(first.delete(SELF).await.status, StatusCode::NO_CONTENT);
    let same = first.delete(SELF).await;
    assert_eq!(
        same.status,
        StatusCode::CONFLICT,
        "the same application cannot confirm"
    );
    assert_eq!(
        other_manager.delete(SELF).await.status,
        StatusCode::NO_CONTENT
    );
    let requested = first.get(SELF).await.body["deletion"].clone();
    assert!(requested["requested_by"].is_string() && requested["delete_at"].is_null());
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    sweep().await;
    assert_eq!(
        first.get(SELF).await.status,
        StatusCode::OK,
        "not confirmed"
    );

    assert_eq!(second.delete(SELF).await.status, StatusCode::NO_CONTENT);
    let confirmed = first.get(SELF).await.body["deletion"].clone();
    assert!(confirmed["confirmed_by"].is_string() && confirmed["delete_at"].is_string());
    assert_ne!(confirmed["confirmed_by"], confirmed["requested_by"]);
    sweep().await;
    assert_eq!(
        tokens.get("/v2/tokens").await.status,
        StatusCode::OK,
        "not due"
    );
    assert_eq!(
        logged_deletions(&first).await,
        [
            "request_deletion: Tenant deletion requested",
            "confirm_deletion: Tenant deletion confirmed",
        ]
    );
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    sweep().await;

    assert_eq!(
        tokens.get("/v2/tokens").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert!(keys_are_destroyed(&vault, &tenant).await);
    assert_eq!(other_manager.get(SELF).await.status, StatusCode::OK);
    let database = vault.database.connect().await;
    let sql = "select count(*) from log
        where tenant_id = $1 and entity_kind = 7 and operation = 4 and actor_kind = 3";
    let executed = database.query_one(sql, &[&tenant.id.number]).await;
    assert_eq!(executed.unwrap().get::<_, i64>(0), 1);
}

/// F16.
///
/// Covers 14.22.
#[tokio::test]
async fn deletions_can_be_canceled_until_executed() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.tenants.deletion_delay = Duration::from_secs(1);
    })
    .await;
    let tenant = vault.tenant().await;
    let first = manager(&vault, &tenant).await;
    let second = manager(&vault, &tenant).await;
    let cancel = "/tenants/self/deletion";

    let nothing = first.delete(cancel).await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    for by_command in [false, true] {
        first.delete(SELF).await;
        second.delete(SELF).await;
        match by_command {
            false => assert_eq!(first.delete(cancel).await.status, StatusCode::NO_CONTENT),
            true => tenants::cancel_deletion_as_operator(&vault.vault, tenant.id)
                .await
                .unwrap(),
        }
        assert_eq!(first.get(SELF).await.body.get("deletion"), None);
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    tenants::delete_due(&vault.vault).await.unwrap();

    assert_eq!(first.get(SELF).await.status, StatusCode::OK);
    let operations = logged_deletions(&first).await;
    let round = ["request_deletion", "confirm_deletion", "cancel_deletion"];
    let operations: Vec<&str> = operations
        .iter()
        .map(|it| it.split(':').next().unwrap())
        .collect();
    assert_eq!(operations, [round, round].concat());
}

/// Covers 14.23.
#[tokio::test]
async fn sql_can_neither_request_nor_bring_forward_a_deletion() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let first = manager(&vault, &tenant).await;
    let second = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let forged = "insert into tenant_deletion
        select tenant_id, gen_random_uuid(), now(), gen_random_uuid(), now(), sha256('x') from tenant";

    database.execute(forged, &[]).await.unwrap();
    tenants::delete_due(&vault.vault).await.unwrap();
    assert_eq!(second.delete(SELF).await.body["code"], "altered_row");
    let removed = database.execute("delete from tenant_deletion", &[]).await;
    assert_eq!(removed.unwrap(), 1);
    assert_eq!(second.delete(SELF).await.status, StatusCode::NO_CONTENT);
    let deletion = first.get(SELF).await.body["deletion"].clone();
    assert!(
        deletion["confirmed_by"].is_null(),
        "a forged request is not confirmed"
    );
    first.delete(SELF).await;
    let bring_forward = "update tenant_deletion set due_at = now()";
    assert_eq!(database.execute(bring_forward, &[]).await.unwrap(), 1);
    tenants::delete_due(&vault.vault).await.unwrap();

    assert_eq!(
        first.put(SELF, json!({"name": "n"})).await.body["code"],
        "altered_row"
    );
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    assert_eq!(tokens.get("/v2/tokens").await.status, StatusCode::OK);
    assert!(!keys_are_destroyed(&vault, &tenant).await);
    let canceled = first.delete("/tenants/self/deletion").await;
    assert_eq!(
        canceled.status,
        StatusCode::NO_CONTENT,
        "it can still be canceled"
    );
}

/// Covers 14.23.
#[tokio::test]
async fn a_canceled_deletion_restored_by_sql_is_not_executed() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.tenants.deletion_delay = Duration::ZERO;
    })
    .await;
    let tenant = vault.tenant().await;
    let first = manager(&vault, &tenant).await;
    let second = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    first.delete(SELF).await;
    second.delete(SELF).await;
    let save = "create table saved as table tenant_deletion";
    database.batch_execute(save).await.unwrap();
    let canceled = first.delete("/tenants/self/deletion").await;
    assert_eq!(canceled.status, StatusCode::NO_CONTENT);

    let restored = "insert into tenant_deletion select * from saved";
    assert_eq!(database.execute(restored, &[]).await.unwrap(), 1);
    tenants::delete_due(&vault.vault).await.unwrap();

    assert_eq!(first.get(SELF).await.status, StatusCode::OK);
    assert!(!keys_are_destroyed(&vault, &tenant).await);
}
