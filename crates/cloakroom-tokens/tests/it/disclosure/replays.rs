//! Replayed responses disclose no more than the original grants allow.

use cloakroom::access::Permission::TokenCreate;
use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{everything, grants, held_by};
use http::{Method, StatusCode};
use serde_json::json;

use super::{Fixture, card, text};

/// F10: a replayed response ignored revoked permissions and was stored with the card number.
#[tokio::test]
async fn a_replay_requires_the_original_grants_and_is_masked() {
    let fixture = Fixture::start().await;
    let all = everything(Transform::Reveal);
    let private = ApplicationKind::Private;
    let holder = fixture.vault.holder(&fixture.tenant, private, all).await;
    let client = fixture.vault.client_with(Some(&holder.key));
    let create = async || {
        let request = client.request(Method::POST, "/tokens");
        let request = request.header("bt-idempotency-key", "order-1001");
        let request = request.header("content-type", "application/json");
        client
            .send(request.body(card("4000056655665556").to_string()))
            .await
    };

    let first = create().await;
    let replayed = create().await;

    assert_eq!(first.body["data"]["number"], "4000056655665556");
    assert_eq!(replayed.status, StatusCode::CREATED);
    assert_eq!(replayed.id(), first.id());
    assert_eq!(replayed.body["data"]["number"], "XXXXXXXXXXXX5556");

    let kind = ApplicationKind::Management;
    let all: Vec<Permission> = held_by(kind).collect();
    let administrator = fixture
        .vault
        .holder(&fixture.tenant, kind, grants(&all))
        .await;
    let manager = fixture.vault.client_with(Some(&administrator.key));
    let path = format!("/applications/{}", holder.application);
    let narrowed = json!({"name": "n", "permissions": ["token:search"]});
    assert_eq!(manager.put(&path, narrowed).await.status, StatusCode::OK);
    fixture.vault.vault.principals.invalidate_all();

    let rejected = create().await;
    assert_eq!(rejected.status, StatusCode::CONFLICT, "{}", text(&rejected));
    assert!(!text(&rejected).contains("5556"), "{}", text(&rejected));
}

/// F10: public keys are not secret, so a guessed idempotency key must not return another client's token.
#[tokio::test]
async fn a_public_key_gets_no_replay_for_another_body() {
    let fixture = Fixture::start().await;
    let public = fixture.public(grants(&[TokenCreate])).await;
    let create = async |number: &str| {
        let request = public.request(Method::POST, "/tokens");
        let request = request.header("bt-idempotency-key", "cart-77");
        let request = request.header("content-type", "application/json");
        public.send(request.body(card(number).to_string())).await
    };
    assert_eq!(create("4000056655665556").await.status, StatusCode::CREATED);
    let other = create("4242424242424242").await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(create("4000056655665556").await.status, StatusCode::CREATED);
}
