//! Scope and validation of idempotency keys.

use cloakroom::access::Transform;
use cloakroom_testkit::everything;
use http::{Method, StatusCode};
use serde_json::json;

use super::{Fixture, count, note, post, replayable, send};

/// Covers 21.5, 21.11.
#[tokio::test]
async fn keys_are_ignored_on_read_only_requests() {
    let fixture = Fixture::start().await;
    let new = json!({"type": "token", "data": "a", "mask": "{{ data }}", "metadata": {"a": "b"}});
    let token = fixture.private.post("/tokens", new).await.id();
    let path = format!("/tokens/{token}");
    let search = json!({"query": "metadata.a:b"});
    let nothing = json!({"query": "metadata.a:c"});
    let mut found = Vec::new();
    for path in ["/tokens/search", "/v2/tokens/search"] {
        for query in [&search, &nothing] {
            let response = post(&fixture.private, path, "k", query.clone()).await;
            found.push(response.items().len());
        }
    }
    let detokenize = |text: &str| json!({"text": format!("{text} {{{{ {token} }}}}")});
    let one = post(&fixture.private, "/detokenize", "k", detokenize("one")).await;
    let two = post(&fixture.private, "/detokenize", "k", detokenize("two")).await;
    let read = send(&fixture.private, &Method::GET, &path, "k", &json!({})).await;
    let deleted = send(&fixture.private, &Method::DELETE, &path, "k", &json!({})).await;
    let deleted_again = send(&fixture.private, &Method::DELETE, &path, "k", &json!({})).await;
    let read_deleted = send(&fixture.private, &Method::GET, &path, "k", &json!({})).await;

    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = post(&fixture.public, "/sessions", "k", json!({})).await;
        sessions.push(session.body["session_key"].clone());
    }

    assert_eq!(found, [1, 0, 1, 0]);
    assert_ne!(
        sessions[0], sessions[1],
        "a guessed key must not share a session"
    );
    assert_eq!(
        (&one.body["text"], &two.body["text"]),
        (&json!("one a"), &json!("two a"))
    );
    let statuses =
        [read, deleted, deleted_again, read_deleted].map(|response| response.status.as_u16());
    assert_eq!(statuses, [200, 204, 404, 404]);
    assert_eq!(count(&fixture.database, "reply").await, 0);
}

/// Covers 21.6.
///
/// T16: keys are scoped to the application and the request.
#[tokio::test]
async fn keys_are_scoped_to_application_method_and_path() {
    let fixture = Fixture::start().await;
    let tenant = fixture.vault.tenant().await;
    let foreign = fixture
        .vault
        .client(&tenant, everything(Transform::Reveal))
        .await;
    let session = fixture.public.post("/sessions", json!({})).await;
    let rule = json!({"description": "All", "priority": 1, "container": "/", "transform": "mask",
        "permissions": ["token:create"]});
    let granted = json!({"nonce": session.body["nonce"], "rules": [rule]});
    fixture.private.post("/sessions/authorize", granted).await;
    let session = fixture
        .private
        .with_key(session.body["session_key"].as_str().unwrap());

    let mut made = Vec::new();
    for client in [&fixture.private, &fixture.public, &foreign, &session] {
        let response = post(client, "/tokens", "k", note("a")).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
        made.push(response.id());
    }
    let tokenized = post(&fixture.private, "/tokenize", "k", json!("a")).await;
    made.push(tokenized.body.as_str().unwrap().to_owned());
    let queried = post(&fixture.private, "/tokens?x=1", "k", note("a"))
        .await
        .id();
    let slashed = post(&fixture.private, "/tokens/", "k", note("a"))
        .await
        .id();
    let empty = post(&fixture.private, "/tokens", "", note("a")).await.id();

    assert_eq!((&queried, &slashed), (&made[0], &made[0]));
    made.push(empty);
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 6, "{made:?}");
}

/// All keys of an application share its idempotency keys.
#[tokio::test]
async fn api_keys_of_one_application_share_idempotency_keys() {
    let fixture = Fixture::start().await;
    let new = json!({"name": "A", "type": "private", "permissions": ["token:create"]});
    let made = fixture.management.post("/applications", new).await;
    let path = format!("/applications/{}/keys", made.id());
    let further = fixture.management.post(&path, json!({})).await;
    let [one, two] = [&made, &further].map(|response| {
        fixture
            .private
            .with_key(response.body["key"].as_str().unwrap())
    });

    let first = post(&one, "/tokens", "k", note("a")).await;
    let again = post(&two, "/tokens", "k", note("a")).await;

    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(replayable(&first), replayable(&again));
}

/// Covers 21.7.
#[tokio::test]
async fn invalid_keys_are_rejected() {
    let fixture = Fixture::start().await;
    let long = "k".repeat(256);
    let rejected = post(&fixture.private, "/tokens", &long, note("a")).await;
    let twice = fixture.private.request(Method::POST, "/tokens");
    let twice = twice
        .header("bt-idempotency-key", "a")
        .header("bt-idempotency-key", "b");
    let twice = twice
        .header("content-type", "application/json")
        .body(note("a").to_string());
    let twice = fixture.private.send(twice).await;

    for response in [rejected, twice] {
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(response.refused(), ["bt-idempotency-key"]);
    }
    let fits = post(&fixture.private, "/tokens", &long[1..], note("a")).await;
    assert_eq!(fits.status, StatusCode::CREATED);
}

/// Some handlers do not read the body; a key applies to them too.
#[tokio::test]
async fn keys_apply_to_requests_with_unreadable_bodies() {
    let fixture = Fixture::start().await;
    let new = json!({"name": "A", "type": "private", "permissions": ["token:read"]});
    let application = fixture.management.post("/applications", new).await.id();
    let path = format!("/applications/{application}/keys");
    let mut responses = Vec::new();
    for _ in 0..2 {
        let request = fixture.management.request(Method::POST, &path);
        let request = request
            .header("bt-idempotency-key", "k")
            .header("content-encoding", "gzip");
        responses.push(fixture.management.send(request.body("x")).await);
    }
    assert_eq!(
        responses[0].status,
        StatusCode::CREATED,
        "{}",
        responses[0].body
    );
    assert_eq!(replayable(&responses[0]), replayable(&responses[1]));
}
