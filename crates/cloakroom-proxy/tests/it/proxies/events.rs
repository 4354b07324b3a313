//! Events of proxies, for webhooks.

use cloakroom::access::Permission;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, manager_with};

/// Subscribes to all events of proxies.
async fn subscribe(fixture: &Fixture) {
    let granted = grants(&[Permission::WebhookCreate]);
    let manager = manager_with(&fixture.vault, &fixture.tenant, granted).await;
    let events = [
        "proxy.created",
        "proxy.updated",
        "proxy.deleted",
        "proxy.invoked",
    ];
    let url = fixture.destination.url("/hook");
    let webhook = json!({"name": "Ledger", "url": url, "events": events});
    let created = manager.post("/webhooks", webhook).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
}

/// The stored events, oldest first: type and payload.
async fn stored(fixture: &Fixture) -> Vec<(String, Value)> {
    fixture.vault.vault.audit.flush().await.unwrap();
    let connection = fixture.vault.database.connect().await;
    let sql = "select event_type, payload from webhook_delivery order by recorded_at, event_id";
    let rows = connection.query(sql, &[]).await.unwrap();
    rows.iter()
        .map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap()))
        .collect()
}

#[tokio::test]
async fn changes_and_invocations_of_a_proxy_are_events_without_secrets() {
    let fixture = Fixture::start().await;
    subscribe(&fixture).await;
    let url = fixture.destination.url("/v1?token=credential-of-psp");
    let attributes = json!({"destination_url": url, "configuration": {"KEY": "secret-value"}});
    let proxy = fixture.create(attributes).await;
    let id = proxy["id"].as_str().unwrap();
    let path = format!("/proxies/{id}");

    let sent = json!({"body-of-request": 1});
    fixture.invoke(&fixture.caller, &proxy, sent).await;
    let renamed = json!({"name": "Renamed"});
    fixture.manager.patch(&path, renamed).await;
    let elsewhere = fixture
        .destination
        .url("/v1")
        .replace("api.psp", "gone.psp");
    let unreachable = fixture.create(json!({"destination_url": elsewhere})).await;
    fixture
        .invoke(&fixture.caller, &unreachable, json!({}))
        .await;
    fixture.manager.delete(&path).await;

    let stored = stored(&fixture).await;
    let of = |kind: &str| -> Vec<&Value> {
        let found = stored.iter().filter(|(name, _)| name == kind);
        found.map(|(_, payload)| payload).collect()
    };
    let created = &of("proxy.created")[0]["proxy"];
    assert_eq!(created["id"], id);
    assert_eq!(created["name"], "Payments");
    assert_eq!(created["destination_url"], fixture.destination.url("/v1"));
    assert_eq!(created["require_authentication"], true);
    assert_eq!(created["created_at"], proxy["created_at"]);
    let updated = &of("proxy.updated")[0]["proxy"];
    assert_eq!(updated["name"], "Renamed");
    assert!(updated["modified_at"].is_string(), "{updated}");
    assert_eq!(of("proxy.deleted"), [&json!({"proxy": {"id": id}})]);
    let invoked = of("proxy.invoked");
    assert_eq!(invoked[0]["proxy"], json!({"id": id, "name": "Payments"}));
    let destination = &invoked[0]["destination"];
    assert_eq!(destination["request"]["url"], fixture.destination.url(""));
    assert_eq!(destination["response"]["status"], 200);
    assert!(destination["response"]["elapsed_ms"].is_u64());
    let failed = &invoked[1]["destination"]["response"];
    assert!(failed["error"].is_string(), "{failed}");
    assert!(failed["status"].is_null());
    let all = json!(stored).to_string();
    let key = proxy["key"].as_str().unwrap();
    for secret in [
        key,
        "secret-value",
        "credential-of-psp",
        "/charges",
        "body-of",
    ] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}
