//! Expiry of sessions, and integrity of their rows.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::{ids, jobs};
use http::StatusCode;
use serde_json::json;

use super::{Fixture, client_of};

/// Covers 17.8.
#[tokio::test]
async fn sessions_expire_by_the_database_clock() {
    let fixture = Fixture::new().await;
    let path = fixture.token("card-1", "/a/").await;
    let ends_at = fixture.now().await + Duration::from_secs(2);
    let body = json!({"permissions": ["token:read"], "expires_at": ends_at.to_string()});
    let session = fixture.authorized(body).await;
    assert_eq!(session.get(&path).await.status, StatusCode::OK);
    let database = fixture.vault.database.connect().await;
    let is_past = async || -> bool {
        database
            .query_one("select now() >= $1", &[&ends_at])
            .await
            .unwrap()
            .get(0)
    };
    while !is_past().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    assert_eq!(session.get(&path).await.status, StatusCode::UNAUTHORIZED);

    jobs::sweep_once(&fixture.vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let sql = "select count(*) from session";
    let left: i64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    let (waiting, nonce) = fixture.session().await;
    database
        .batch_execute("update session set expires_at = now() - interval '1 s'")
        .await
        .unwrap();
    let body = json!({"nonce": nonce, "permissions": ["token:read"]});
    let authorized = fixture.server.post("/sessions/authorize", body).await;
    assert_eq!(
        authorized.status,
        StatusCode::NOT_FOUND,
        "expired before authorization"
    );
    assert_eq!(waiting.get(&path).await.status, StatusCode::UNAUTHORIZED);
}

/// Covers 17.9.
#[tokio::test]
async fn deleting_an_application_ends_its_sessions() {
    let fixture = Fixture::new().await;
    let path = fixture.token("card-1", "/a/").await;
    let session = fixture
        .authorized(json!({"permissions": ["token:read"]}))
        .await;
    assert_eq!(session.get(&path).await.status, StatusCode::OK);
    let management = client_of(
        &fixture,
        ApplicationKind::Management,
        Permission::ApplicationDelete,
    )
    .await;

    let deleted = management
        .delete(&format!("/applications/{}", fixture.browser_id))
        .await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(session.get(&path).await.status, StatusCode::UNAUTHORIZED);
}

/// I22 for sessions.
///
/// Covers 17.10.
#[tokio::test]
async fn sql_can_neither_authorize_nor_widen_a_session() {
    let fixture = Fixture::new().await;
    let path = fixture.token("card-1", "/a/").await;
    let everything = r#"{"permissions":["token:read"],"rules":[]}"#;
    let changes = [
        format!("grants = '{everything}'"),
        "expires_at = expires_at + interval '1 hour'".to_owned(),
        "application_id = gen_random_uuid()".to_owned(),
        "nonce_digest = sha256('x')".to_owned(),
    ];
    for change in changes {
        let (waiting, nonce) = fixture.session().await;
        let session = fixture
            .authorized(json!({"permissions": ["token:create"]}))
            .await;
        let database = fixture.vault.database.connect().await;
        database
            .batch_execute(&format!("update session set {change} where grants is null"))
            .await
            .unwrap();
        let response = waiting.get(&path).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{change}");
        let body = json!({"nonce": nonce, "permissions": ["token:read"]});
        let authorized = fixture.server.post("/sessions/authorize", body).await;
        assert!(
            !authorized.status.is_success(),
            "{change}: {}",
            authorized.status
        );

        if !change.starts_with("nonce") {
            database
                .batch_execute(&format!("update session set {change}"))
                .await
                .unwrap();
            fixture.vault.vault.principals.invalidate_all();
            let response = session.get(&path).await;
            assert_eq!(
                response.status,
                StatusCode::UNAUTHORIZED,
                "widened: {change}"
            );
        }
        database.batch_execute("delete from session").await.unwrap();
    }
}
