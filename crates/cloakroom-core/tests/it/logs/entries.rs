//! Which operations are logged, and when.

use std::time::{Duration, Instant};

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{note, reader};

/// `operation outcome entity_type` of each entry, newest first.
fn summarize(listed: &[Value]) -> Vec<String> {
    let words = |record: &Value| {
        let word = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {}",
            word("operation"),
            word("outcome"),
            word("entity_type")
        )
    };
    listed.iter().map(words).collect()
}

/// Covers 3.30, 12.11, 19.1.
#[tokio::test]
async fn token_operations_are_logged_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let client = vault.client_with(Some(&holder.key));
    let logs = reader(&vault, &tenant).await;

    let id = client.post("/tokens", note("alpha")).await.id();
    let path = format!("/tokens/{id}");
    client.get(&path).await;
    client.patch(&path, json!({"metadata": {"a": "b"}})).await;
    client.get("/v2/tokens").await;
    client.get("/tokens").await;
    client
        .post("/v2/tokens/search", json!({"query": "metadata.a:b"}))
        .await;
    client
        .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
        .await;
    client.delete(&path).await;

    let listed = logs.get(&format!("/logs?entity_id={id}")).await;

    assert_eq!(listed.status, StatusCode::OK);
    assert_eq!(
        summarize(listed.items()),
        [
            "delete done token",
            "read revealed token",
            "search revealed token",
            "read revealed token",
            "read revealed token",
            "update revealed token",
            "read revealed token",
            "create revealed token",
        ]
    );
    for record in listed.items() {
        assert_eq!(record["actor_id"], holder.application.to_string());
        assert_eq!(record["actor_type"], "application");
        assert_eq!(record["tenant_id"], tenant.id.uuid.to_string());
        assert_eq!(record["entity_id"], id);
        let text = record["id"].as_str().unwrap();
        assert_eq!(text.parse::<uuid::Uuid>().unwrap().get_version_num(), 4);
    }
    assert_eq!(listed.items()[7]["message"], "Token created");
    assert_eq!(listed.items()[6]["message"], "Token retrieved");
    assert!(!String::from_utf8_lossy(&listed.bytes).contains("alpha"));
}

/// Reads that show no data are logged too, with their outcome.
/// Covers 19.2.
#[tokio::test]
async fn masked_and_redacted_reads_are_logged_within_a_second() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, everything(Transform::Reveal)).await;
    let id = creator.post("/tokens", note("alpha")).await.id();
    let reads = [Permission::TokenRead];
    let masked = vault.client(&tenant, grants(&reads)).await;
    let redacting = cloakroom::access::Grants {
        rules: vec![rule(1, "/", Transform::Redact, &reads)],
        ..grants(&[])
    };
    let redacted = vault.client(&tenant, redacting).await;

    masked.get(&format!("/tokens/{id}")).await;
    redacted.get(&format!("/tokens/{id}")).await;
    let started = Instant::now();
    let database = vault.database.connect().await;
    let count = async || -> i64 {
        let sql = "select count(*) from log where outcome in (2, 3) and operation = 2";
        database.query_one(sql, &[]).await.unwrap().get(0)
    };
    while count().await < 2 {
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{}",
            count().await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let logs = reader(&vault, &tenant).await;
    let listed = logs.get(&format!("/logs?entity_id={id}")).await;
    assert_eq!(
        summarize(listed.items()),
        [
            "read redacted token",
            "read masked token",
            "create revealed token"
        ]
    );
}

/// I20: a reveal that cannot be logged is rejected; reads that show no data continue.
/// Covers 19.3.
#[tokio::test]
async fn reveals_that_cannot_be_logged_are_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let id = client.post("/tokens", note("alpha")).await.id();
    let masked = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let database = vault.database.connect().await;
    database
        .batch_execute("alter table log add constraint no_more check (false) not valid")
        .await
        .unwrap();

    let path = format!("/tokens/{id}");
    let detokenized = json!(format!("{{{{ {id} }}}}"));
    let rejected = [
        client.get(&path).await,
        client.get("/v2/tokens").await,
        client.get("/tokens").await,
        client.post("/v2/tokens/search", json!({})).await,
        client.post("/detokenize", detokenized).await,
    ];
    let masked = masked.get(&path).await;
    let created = client.post("/tokens", note("beta")).await;
    let deleted = client.delete(&path).await;

    for response in rejected {
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.body["code"], "audit_unavailable");
        assert!(!String::from_utf8_lossy(&response.bytes).contains("alpha"));
    }
    assert_eq!(masked.status, StatusCode::OK);
    assert!(created.status.is_server_error());
    assert!(deleted.status.is_server_error());
    let sql = "select count(*) from token";
    let tokens: i64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(tokens, 1, "a change that cannot be logged is rolled back");
}
