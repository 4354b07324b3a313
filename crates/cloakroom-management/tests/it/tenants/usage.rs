//! Usage reports.

use cloakroom::access::Transform;
use cloakroom_testkit::{TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::{manager, note};

/// Covers 14.15, 14.16.
#[tokio::test]
async fn usage_reports_count_stored_and_active_tokens() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let other_manager = vault.revealing_client().await;
    let report = async || client.get("/tenants/self/reports/usage").await.body;
    let empty = report().await;

    let card = json!({"type": "card", "data": {"number": "4242424242424242",
        "expiration_month": 12, "expiration_year": 2099}});
    let mut ids = Vec::new();
    for new in [card, note("a"), note("b"), note("c")] {
        let created = tokens.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        ids.push(created.id());
    }
    other_manager
        .post("/tokens", note("of somebody else"))
        .await;
    tokens.delete(&format!("/tokens/{}", ids[3])).await;
    let last = tokens.get(&format!("/tokens/{}", ids[2])).await;
    let full = report().await;

    assert_eq!(
        empty,
        json!({
            "token_report": {
                "metrics_by_type": {},
                "included_monthly_active_tokens": 0,
                "monthly_active_tokens": 0,
                "total_tokens": 0,
            },
            "total_tokens": 0,
        })
    );
    let by_type = &full["token_report"]["metrics_by_type"];
    assert_eq!(by_type["token"]["count"], 2);
    assert_eq!(by_type["token"]["last_created_at"], last.body["created_at"]);
    assert_eq!(by_type["card"]["count"], 1);
    assert_eq!(by_type.as_object().unwrap().len(), 2);
    assert_eq!(full["total_tokens"], 3);
    assert_eq!(full["token_report"]["total_tokens"], 3);
    // The deleted token was active this month, too.
    assert_eq!(full["token_report"]["monthly_active_tokens"], 4);
}

/// Covers 14.16.
#[tokio::test]
async fn tokens_of_earlier_months_are_active_when_used() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Mask)).await;
    let mut ids = Vec::new();
    for data in ["a", "b", "c"] {
        ids.push(tokens.post("/tokens", note(data)).await.id());
    }
    let active = async || {
        let report = client.get("/tenants/self/reports/usage").await;
        report.body["token_report"]["monthly_active_tokens"].clone()
    };
    assert_eq!(active().await, 3);

    // Moves the log entries so far to an earlier month.
    let database = vault.database.connect().await;
    let earlier = "update log set created_at = created_at - interval '40 days'";
    database.execute(earlier, &[]).await.unwrap();
    let none = active().await;
    for _ in 0..2 {
        tokens.get(&format!("/tokens/{}", ids[0])).await;
    }
    let read = active().await;
    tokens.get("/v2/tokens?size=2").await;

    assert_eq!((none, read), (json!(0), json!(1)));
    assert!(active().await.as_u64().unwrap() >= 2);
}

/// Covers 14.15.
#[tokio::test]
async fn usage_reports_exclude_expired_tokens() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Mask)).await;
    tokens.post("/tokens", note("stays")).await;
    let soon = json!({"type": "token", "data": "goes", "expires_at": "2099-01-01"});
    let id = tokens.post("/tokens", soon).await.id();

    let database = vault.database.connect().await;
    let expire = format!("update token set expires_at = now() where token_id = '{id}'");
    assert_eq!(database.execute(&expire, &[]).await.unwrap(), 1);

    let report = client.get("/tenants/self/reports/usage").await;
    assert_eq!(report.body["total_tokens"], 1);
}
