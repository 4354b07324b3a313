//! The resource: create, read, replace, delete, and its limits.

use std::time::Duration;

use cloakroom_testkit::{LogCapture, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::Fixture;
use cloakroom::access::{ApplicationKind, Permission};

#[expect(clippy::too_many_lines, reason = "the life of one webhook")]
#[tokio::test]
async fn webhooks_are_created_read_replaced_and_deleted() {
    let fixture = Fixture::start().await;
    let new = json!({
        "name": "Ledger",
        "url": fixture.endpoint.url(),
        "notify_email": "",
        "events": ["token.deleted", "token.created", "token.deleted"],
    });

    let created = fixture.manager.post("/webhooks", new).await;
    let path = format!("/webhooks/{}", created.id());
    let read = fixture.manager.get(&path).await;
    let listed = fixture.manager.get("/webhooks?size=10").await;
    let change = json!({
        "name": "Books",
        "url": fixture.endpoint.url(),
        "notify_email": "ada@example.com",
        "events": ["token.created"],
        "status": "disabled",
    });
    let changed = fixture.manager.put(&path, change).await;
    let enabled =
        json!({"name": "Books", "url": fixture.endpoint.url(), "events": ["token.created"]});
    let enabled = fixture.manager.put(&path, enabled).await;
    let deleted = fixture.manager.delete(&path).await;
    let gone = fixture.manager.get(&path).await;
    let gone_again = fixture.manager.delete(&path).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let location = format!("{}{path}", fixture.vault.base_url);
    assert_eq!(created.header("location"), location);
    let unstable = [
        "id",
        "tenant_id",
        "url",
        "created_by",
        "created_at",
        "secret",
    ];
    insta::assert_snapshot!(created.told(&unstable), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "status": "enabled",
      "name": "Ledger",
      "url": "[url]",
      "events": [
        "token.deleted",
        "token.created"
      ],
      "created_by": "[created_by]",
      "created_at": "[created_at]",
      "secret": "[secret]"
    }
    "#);
    assert!(
        created.body["secret"]
            .as_str()
            .unwrap()
            .starts_with("whsec_")
    );
    assert_eq!(created.body["url"], fixture.endpoint.url());
    let mut shown = created.body.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(read.body, shown);
    assert_eq!(listed.items(), [shown]);
    assert_eq!(listed.body["pagination"]["page_size"], 1);
    assert_eq!(changed.body["status"], "disabled");
    assert_eq!(changed.body["notify_email"], "ada@example.com");
    assert!(changed.body["modified_at"].is_string());
    assert_eq!(enabled.body["status"], "enabled");
    assert_eq!(enabled.body.get("notify_email"), None);
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert_eq!(gone_again.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn invalid_webhooks_are_rejected() {
    let fixture = Fixture::start().await;
    let url = fixture.endpoint.url();
    let with = |name: &str, value: Value| {
        let mut webhook = fixture.webhook(&["token.created"]);
        webhook[name] = value;
        webhook
    };
    let port = url.split(':').nth(2).unwrap().split('/').next().unwrap();

    let cases = [
        (json!({}), "events name url"),
        (with("name", json!("")), "name"),
        (with("name", json!("4242424242424242")), "name"),
        (with("url", json!("http://hooks.example.com/")), "url"),
        (with("url", json!("https://127.0.0.1/")), "url"),
        (with("url", json!("https://localhost/")), "url"),
        (with("url", json!("https://hooks.example.com:22/")), "url"),
        (
            with(
                "url",
                json!(format!("https://a:b@hooks.example.com:{port}/")),
            ),
            "url",
        ),
        (
            with("url", json!(format!("{url}&card=4242424242424242"))),
            "url",
        ),
        (with("notify_email", json!("ada")), "notify_email"),
        (
            with("notify_email", json!("4242424242424242@example.com")),
            "notify_email",
        ),
        (with("events", json!([])), "events"),
        (
            with("events", json!(["token.created", "token:created"])),
            "events[1]",
        ),
        (with("events", json!(["http.request"])), "events[0]"),
    ];
    for (new, invalid) in cases {
        let response = fixture.manager.post("/webhooks", new.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{new}");
        assert_eq!(response.refused().join(" "), invalid, "{new}");
        for member in ["status", "title", "detail"] {
            assert!(response.body.get(member).is_some(), "{member}");
        }
    }
    let id = fixture.subscribe(&["token.created"]).await;
    let change = with("status", json!("paused"));
    let response = fixture
        .manager
        .put(&format!("/webhooks/{id}"), change)
        .await;
    assert_eq!(response.refused(), ["status"]);
}

#[tokio::test]
async fn tenants_have_at_most_five_webhooks_of_their_own() {
    let fixture = Fixture::start().await;
    let other = fixture.vault.tenant().await;
    let other = fixture
        .vault
        .holder(
            &other,
            ApplicationKind::Management,
            grants(&super::MANAGEMENT),
        )
        .await;
    let other = fixture.vault.client_with(Some(&other.key));
    let webhook = fixture.webhook(&["token.created"]);

    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (manager, webhook) = (fixture.manager.clone(), webhook.clone());
        requests.spawn(async move { manager.post("/webhooks", webhook).await.status });
    }
    let statuses = requests.join_all().await;
    let listed = fixture.manager.get("/webhooks").await;
    let id = listed.items()[0]["id"].as_str().unwrap();

    let created = statuses
        .iter()
        .filter(|status| **status == StatusCode::CREATED);
    assert_eq!(created.count(), 5);
    assert!(statuses.contains(&StatusCode::UNPROCESSABLE_ENTITY));
    assert_eq!(listed.items().len(), 5);
    assert_eq!(other.get("/webhooks").await.items().len(), 0);
    for path in [
        format!("/webhooks/{id}"),
        format!("/webhooks/{id}/deliveries"),
    ] {
        assert_eq!(
            other.get(&path).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let replay = json!({"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"});
    let replayed = other.post(&format!("/webhooks/{id}/replay"), replay).await;
    assert_eq!(replayed.status, StatusCode::NOT_FOUND);
    assert_eq!(
        other.delete(&format!("/webhooks/{id}")).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        other.post("/webhooks", webhook).await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn permissions_have_two_spellings_and_event_types_are_listed() {
    let fixture = Fixture::start().await;
    let reader = json!({"name": "Reader", "type": "management", "permissions": ["webhooks:read"]});
    let admin = fixture
        .vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Management,
            grants(&[Permission::ApplicationCreate, Permission::ApplicationGrant]),
        )
        .await;
    let admin = fixture.vault.client_with(Some(&admin.key));
    let reader = admin.post("/applications", reader).await;
    let reader = fixture.vault.client_with(reader.body["key"].as_str());

    let types = reader.get("/webhooks/event-types").await;
    let denied = reader
        .post("/webhooks", fixture.webhook(&["token.created"]))
        .await;

    let types: Vec<String> = serde_json::from_value(types.body).unwrap();
    assert!(types.contains(&"token.created".to_owned()));
    assert!(types.contains(&"3ds.session.authenticated".to_owned()));
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
}

/// A row that SQL changed gets no events, and does not hide the others.
#[tokio::test]
async fn an_altered_webhook_is_neither_listed_nor_used() {
    let mut fixture = Fixture::start().await;
    let altered = fixture.subscribe(&["token.created"]).await;
    let intact = fixture.subscribe(&["token.created"]).await;
    let id: uuid::Uuid = altered.parse().unwrap();

    let elsewhere = fixture.endpoint.url().replace("tenant=a", "tenant=b");
    let sql = "update webhook set url = $2 where webhook_id = $1";
    fixture.sql(sql, &[&id, &elsewhere]).await;
    fixture.create_token().await;
    fixture.deliver();
    let received = fixture.endpoint.wait_for(1).await;
    fixture
        .wait_for_log(&intact, |delivery| delivery["state"] == "delivered")
        .await;

    let listed = fixture.manager.get("/webhooks").await;
    assert_eq!(listed.items().len(), 1);
    assert_eq!(listed.items()[0]["id"], intact);
    let read = fixture.manager.get(&format!("/webhooks/{altered}")).await;
    assert_eq!(read.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(received.len(), 1);
    assert!(received[0].path.ends_with("tenant=a"));
    assert_eq!(fixture.endpoint.count(), 1);
    let deleted = fixture
        .manager
        .delete(&format!("/webhooks/{altered}"))
        .await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
}

/// An authentic row that Cloakroom has disabled, changed or deleted since gets no events.
#[tokio::test]
async fn a_webhook_restored_by_sql_receives_no_events() {
    let mut fixture = Fixture::start().await;
    let restored = fixture.subscribe(&["token.created"]).await;
    fixture
        .sql("create table saved as table webhook", &[])
        .await;
    let path = format!("/webhooks/{restored}");
    let deleted = fixture.manager.delete(&path).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);

    fixture
        .sql("insert into webhook select * from saved", &[])
        .await;
    fixture.create_token().await;
    let logs = LogCapture::start();
    fixture.deliver();

    // The delivery job reports the row where it would deliver otherwise.
    let reported = "a webhook was changed or restored outside the vault";
    while logs.count(reported) == 0 && fixture.endpoint.count() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.endpoint.count(), 0);
    let changed = fixture
        .manager
        .put(&path, fixture.webhook(&["token.created"]))
        .await;
    assert_eq!(changed.body["code"], "altered_row");
}
