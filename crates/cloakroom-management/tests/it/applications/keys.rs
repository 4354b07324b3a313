//! Keys of applications.

use cloakroom_testkit::{TestResponse, TestVault};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    UNKNOWN_ID, create_application, create_status, ids_of, manager, new_application,
    new_application_with,
};

/// Covers 13.18, 13.19.
#[tokio::test]
async fn an_application_has_at_most_three_keys() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let path = format!("{}/keys", application.path);
    let create_key = async || manager.send(manager.request(Method::POST, &path)).await;

    let mut keys = vec![application.key.clone()];
    for _ in 0..2 {
        let created = create_key().await;
        assert_eq!(created.status, StatusCode::CREATED);
        let location = format!("{}{path}/{}", vault.base_url, created.id());
        assert_eq!(created.header("location"), location);
        keys.push(created.body["key"].as_str().unwrap().to_owned());
    }
    let fourth = create_key().await;

    assert_eq!(fourth.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(fourth.body["title"], "Unprocessable Entity");
    assert!(
        fourth.body["detail"]
            .as_str()
            .unwrap()
            .contains("at most 3 keys")
    );
    for key in keys {
        assert_eq!(create_status(&vault, &key).await, StatusCode::CREATED);
    }
    manager
        .delete(&format!("{path}/{}", application.key_id))
        .await;
    assert_eq!(create_key().await.status, StatusCode::CREATED);
}

/// Covers 13.19.
#[tokio::test]
async fn concurrent_key_creations_respect_the_limit() {
    let vault = TestVault::start_with_long_timeouts().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    for _ in 0..5 {
        let new = new_application_with(json!({"create_key": false}));
        let id = manager.post("/applications", new).await.id();
        let path = format!("/applications/{id}/keys");
        let requests = (0..8).map(|number| {
            let node = [&vault.base_url, &other.base_url][number % 2];
            let client = manager.at(node);
            let path = path.clone();
            async move { client.send(client.request(Method::POST, &path)).await }
        });
        let responses: Vec<TestResponse> = JoinSet::from_iter(requests).join_all().await;

        let count = |status: StatusCode| responses.iter().filter(|a| a.status == status).count();
        assert_eq!(count(StatusCode::CREATED), 3);
        assert_eq!(count(StatusCode::UNPROCESSABLE_ENTITY), 5);
        assert_eq!(manager.get(&path).await.body.as_array().unwrap().len(), 3);
        for created in responses.iter().filter(|a| a.status == StatusCode::CREATED) {
            let key = created.body["key"].as_str().unwrap();
            assert_eq!(create_status(&other, key).await, StatusCode::CREATED);
        }
    }
}

/// Covers 13.20, 13.21.
#[tokio::test]
async fn keys_are_listed_and_read() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let path = format!("{}/keys", application.path);
    let second = manager.send(manager.request(Method::POST, &path)).await;
    let second_id = second.id();

    let all = manager.get(&path).await;
    assert_eq!(
        ids_of(all.body.as_array().unwrap()),
        [&application.key_id, &second_id]
    );
    let mut expected = second.body.clone();
    expected.as_object_mut().unwrap().shift_remove("key");
    assert_eq!(all.body[1], expected);
    let one = format!("{path}/{second_id}");
    assert_eq!(manager.get(&one).await.body, expected);
    let filters = [
        (format!("?id={second_id}"), vec![&second_id]),
        (
            format!("?id={second_id}&id={}", application.key_id),
            vec![&application.key_id, &second_id],
        ),
        (format!("?id={UNKNOWN_ID}"), vec![]),
        (
            "?type=private&type=public".to_owned(),
            vec![&application.key_id, &second_id],
        ),
        ("?type=public".to_owned(), vec![]),
    ];
    for (query, expected) in filters {
        let listed = manager.get(&format!("{path}{query}")).await;
        assert_eq!(ids_of(listed.body.as_array().unwrap()), expected, "{query}");
    }
    let rejected = manager.get(&format!("{path}?id=x&type=expiring")).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.refused(), ["id", "type"]);
}

/// Covers 13.21.
#[tokio::test]
async fn a_deleted_key_is_rejected_and_not_found() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let path = format!("{}/keys", application.path);
    let second = manager.send(manager.request(Method::POST, &path)).await;
    let second_key = second.body["key"].as_str().unwrap().to_owned();
    let one = format!("{path}/{}", second.id());

    assert_eq!(
        create_status(&vault, &second_key).await,
        StatusCode::CREATED
    );
    assert_eq!(manager.delete(&one).await.status, StatusCode::NO_CONTENT);
    assert_eq!(
        create_status(&vault, &second_key).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );
    // A key is not found under another application.
    let other = create_application(&manager, new_application()).await;
    let unknown = [
        one,
        format!("{path}/{UNKNOWN_ID}"),
        format!("{path}/nothing"),
        format!("{}/keys/{}", other.path, application.key_id),
    ];
    let bytes = manager.get(&unknown[0]).await.bytes;
    for path in unknown {
        for missing in [manager.get(&path).await, manager.delete(&path).await] {
            assert_eq!(missing.status, StatusCode::NOT_FOUND, "{path}");
            assert_eq!(missing.bytes, bytes, "{path}");
        }
    }
    let unknown_application = format!("/applications/{UNKNOWN_ID}/keys/{}", application.key_id);
    for missing in [
        manager.get(&unknown_application).await,
        manager.delete(&unknown_application).await,
    ] {
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );
}

/// Covers 13.22.
#[tokio::test]
async fn regenerating_a_key_is_gone_and_names_the_replacement() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;

    let path = format!("{}/regenerate", application.path);
    let gone = manager.send(manager.request(Method::POST, &path)).await;

    assert_eq!(gone.status, StatusCode::GONE);
    assert_eq!(gone.body["title"], "Gone");
    let detail = gone.body["detail"].as_str().unwrap();
    assert!(detail.contains("POST /applications/{id}/keys"), "{detail}");
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );
}
