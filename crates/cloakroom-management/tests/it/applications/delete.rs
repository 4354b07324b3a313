//! Deletion and expiry of applications and keys.

use std::time::{Duration, Instant};

use cloakroom::access::Transform;
use cloakroom::{ids, jobs};
use cloakroom_testkit::{Client, TestVault, everything};
use http::{Method, StatusCode};
use serde_json::json;

use super::{
    CreatedApplication, create_application, create_status, manager, new_application,
    new_application_with,
};

/// Covers 13.15, 13.16.
#[tokio::test]
async fn deleting_an_application_deletes_its_keys_but_not_its_tokens() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let reader = vault.client(&tenant, everything(Transform::Reveal)).await;
    let application = create_application(&manager, new_application()).await;
    let keys = format!("{}/keys", application.path);
    let second = manager.send(manager.request(Method::POST, &keys)).await;
    let second = second.body["key"].as_str().unwrap().to_owned();
    let client = vault.client_with(Some(&application.key));
    let token = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await
        .id();
    assert_eq!(create_status(&vault, &second).await, StatusCode::CREATED);

    let deleted = manager.delete(&application.path).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert!(deleted.bytes.is_empty());
    for key in [&application.key, &second] {
        assert_eq!(create_status(&vault, key).await, StatusCode::UNAUTHORIZED);
    }
    let database = vault.database.connect().await;
    let remaining = "select (select count(*) from application where application_id = $1)
        + (select count(*) from application_key where application_id = $1)";
    let id: uuid::Uuid = application.id.parse().unwrap();
    let remaining: i64 = database.query_one(remaining, &[&id]).await.unwrap().get(0);
    assert_eq!(remaining, 0);
    assert_eq!(
        reader.get(&format!("/tokens/{token}")).await.body["data"],
        1
    );
    let change = json!({"name": "x", "permissions": ["token:read"]});
    for missing in [
        manager.get(&application.path).await,
        manager.put(&application.path, change).await,
        manager.delete(&application.path).await,
        manager.get(&keys).await,
        manager.send(manager.request(Method::POST, &keys)).await,
    ] {
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        assert_eq!(missing.body["code"], "not_found");
    }
}

/// I16: a deleted key is rejected on every node within five seconds.
///
/// Covers 13.16.
#[tokio::test]
async fn a_deleted_key_is_rejected_on_every_node_within_five_seconds() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let deletions: [fn(&CreatedApplication) -> String; 2] = [
        |application| application.path.clone(),
        |application| format!("{}/keys/{}", application.path, application.key_id),
    ];
    for deletion in deletions {
        let application = create_application(&manager, new_application()).await;
        let nodes = [&vault, &other].map(|node| node.client_with(Some(&application.key)));
        for node in &nodes {
            assert_eq!(node.get("/applications/key").await.status, StatusCode::OK);
        }

        let deleting = async {
            // Both nodes have the key cached by then.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let deleted = manager.delete(&deletion(&application)).await;
            assert_eq!(deleted.status, StatusCode::NO_CONTENT);
            Instant::now()
        };
        let [here, there] = &nodes;
        let (here, there, deleted) = tokio::join!(
            send_until_rejected(here),
            send_until_rejected(there),
            deleting
        );

        let [here, there] = [here, there].map(|last| last.saturating_duration_since(deleted));
        println!("the last accepted request was sent {here:?} and {there:?} after the deletion");
        assert_eq!(
            here,
            Duration::ZERO,
            "the deleting node rejects the key immediately"
        );
        assert!(there <= Duration::from_secs(5), "{there:?}");
    }
}

/// Sends requests until the key is rejected 20 times in a row; returns when the last accepted request was sent.
async fn send_until_rejected(client: &Client) -> Instant {
    let started = Instant::now();
    let mut last = started;
    let mut rejected = 0;
    while rejected < 20 {
        let sent_at = Instant::now();
        match client.get("/permissions").await.status {
            StatusCode::OK => (last, rejected) = (sent_at, 0),
            StatusCode::UNAUTHORIZED => rejected += 1,
            other => panic!("{other}"),
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the key still works"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    last
}

/// A lookup that starts before the deletion may finish after it. Its result must be used neither by requests that
/// joined the lookup nor by later ones.
///
/// Covers 13.16.
#[tokio::test]
async fn a_key_deleted_during_its_lookup_is_rejected_immediately() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let client = vault.client_with(Some(&application.key));
    let send = async || client.get("/permissions").await.status;
    // From here on every lookup takes a second and sees the rows as of its start.
    let slow = "alter table tenant rename to quick_tenant;
        create view tenant as select * from quick_tenant where pg_sleep(1) is not null";
    let database = vault.database.connect().await;
    database.batch_execute(slow).await.unwrap();

    let deleting = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let deleted = manager.delete(&application.path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        send().await
    };
    let started = Instant::now();
    let (before, joined) = tokio::join!(send(), deleting);
    let took = started.elapsed();
    let later = send().await;

    assert_eq!(
        before,
        StatusCode::OK,
        "its lookup started before the deletion"
    );
    assert!(took > Duration::from_secs(1), "{took:?}");
    assert_eq!(joined, StatusCode::UNAUTHORIZED);
    assert_eq!(later, StatusCode::UNAUTHORIZED);
}

/// Covers 13.17.
#[tokio::test]
async fn an_application_expires_on_time_and_is_swept_with_its_keys() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let soon = "select now() + interval '2 seconds'";
    let expires_at: jiff::Timestamp = database.query_one(soon, &[]).await.unwrap().get(0);
    let expiry = Instant::now() + Duration::from_secs(2);
    let application = create_application(
        &manager,
        new_application_with(json!({"expires_at": expires_at.to_string()})),
    )
    .await;
    let later = new_application_with(json!({"expires_at": "8/26/2090 7:23:57 PM -07:00"}));
    let later = create_application(&manager, later).await;
    let later_body = manager.get(&later.path).await.body;
    assert_eq!(later_body["expires_at"], "2090-08-27T02:23:57+00:00");

    let client = vault.client_with(Some(&application.key));
    let mut accepted = 0;
    loop {
        let sent_at = Instant::now();
        match client.get("/permissions").await.status {
            StatusCode::OK => accepted += 1,
            other => {
                assert_eq!(other, StatusCode::UNAUTHORIZED);
                break;
            }
        }
        assert!(
            sent_at < expiry,
            "accepted {:?} after the expiry",
            sent_at - expiry
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(accepted > 10, "{accepted}");
    let change = json!({"name": "x", "permissions": ["token:read"]});
    let keys = format!("{}/keys", application.path);
    for missing in [
        manager.get(&application.path).await,
        manager.put(&application.path, change).await,
        manager.delete(&application.path).await,
        manager.get(&keys).await,
        manager.send(manager.request(Method::POST, &keys)).await,
    ] {
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
    let listed = manager.get("/applications").await.body;
    assert_eq!(listed["pagination"]["total_items"], 2);

    let swept = jobs::sweep_once(&vault.vault, ids::new_uuid()).await;
    assert!(swept.unwrap().is_some());

    let remaining = "select count(*) from application a full join application_key k
        on a.application_id = k.application_id
        where coalesce(a.application_id, k.application_id) = $1";
    for (application, expected) in [(&application, 0_i64), (&later, 1)] {
        let id: uuid::Uuid = application.id.parse().unwrap();
        let remaining: i64 = database.query_one(remaining, &[&id]).await.unwrap().get(0);
        assert_eq!(remaining, expected);
    }
    assert_eq!(create_status(&vault, &later.key).await, StatusCode::CREATED);
    let recorded = manager
        .get(&format!("/logs?entity_id={}", application.id))
        .await;
    assert_eq!(recorded.items()[0]["operation"], "expire");
    assert_eq!(recorded.items()[0]["actor_type"], "system");
}
