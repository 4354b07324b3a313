//! Converting intents discloses no hidden data.

use cloakroom::access::Permission::{TokenCreate, TokenIntentCreate, TokenRead, TokenUpdate};
use cloakroom::access::Transform;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::json;

use super::{Fixture, NUMBER, card, text};

/// F1: the response to a conversion applies the mask of the type, whatever mask the new token gets.
#[tokio::test]
async fn converting_an_intent_applies_the_mask_of_its_type() {
    let fixture = Fixture::start().await;
    let collects = grants(&[TokenCreate, TokenIntentCreate]);
    let public = fixture.public(collects).await;
    let masking = fixture
        .client_with_rules(&[("/", Transform::Mask, &[TokenCreate, TokenUpdate])])
        .await;
    let secret = json!({"type": "token", "data": {"secret": "open sesame"}});

    for client in [&public, &masking] {
        let intent = public.post("/token-intents", card(NUMBER)).await.id();
        let new = json!({"token_intent_id": intent});
        let converted = client.post("/tokens", new).await;
        assert_eq!(
            converted.status,
            StatusCode::CREATED,
            "{}",
            text(&converted)
        );
        assert_eq!(converted.body["data"]["number"], "XXXXXXXXXXXX1053");

        let intent = public.post("/token-intents", secret.clone()).await.id();
        let new = json!({"token_intent_id": intent});
        let converted = client.post("/tokens", new).await;
        assert_eq!(converted.status, StatusCode::CREATED);
        assert!(!text(&converted).contains("sesame"), "{}", text(&converted));
    }
    // The acceptance of an expression would disclose the number, one predicate at a time.
    for attribute in ["mask", "id", "fingerprint_expression", "search_indexes"] {
        let intent = public.post("/token-intents", card(NUMBER)).await.id();
        let predicate = "{% if data.number contains '246' %}{{ data.number }}{% endif %}";
        let mut new = json!({"token_intent_id": intent});
        new[attribute] = match attribute {
            "search_indexes" => json!([predicate]),
            _ => json!(predicate),
        };
        let converted = public.post("/tokens", new).await;
        assert_eq!(converted.status, StatusCode::FORBIDDEN, "{attribute}");
    }
    // Public keys are not secret and must not choose how hidden data is shown.
    for attribute in ["mask", "id", "fingerprint_expression"] {
        let intent = public.post("/token-intents", secret.clone()).await.id();
        let mut new = json!({"token_intent_id": intent});
        new[attribute] = json!("{{ data.secret }}");
        let converted = public.post("/tokens", new).await;
        assert_eq!(converted.status, StatusCode::FORBIDDEN, "{attribute}");
    }
}

/// An intent is converted by its own application, or by one with `token:update` in the default container of its type.
#[tokio::test]
async fn an_intent_is_converted_by_its_application_or_one_with_update_permission() {
    let fixture = Fixture::start().await;
    let public = fixture
        .public(grants(&[TokenCreate, TokenIntentCreate]))
        .await;
    let unrelated = fixture
        .public(grants(&[TokenCreate, TokenIntentCreate]))
        .await;
    let server = fixture
        .client_with_rules(&[("/pci/", Transform::Mask, &[TokenCreate, TokenUpdate])])
        .await;
    let other = fixture
        .client_with_rules(&[("/pci/", Transform::Mask, &[TokenCreate])])
        .await;

    for (client, status) in [
        (&unrelated, StatusCode::FORBIDDEN),
        (&other, StatusCode::FORBIDDEN),
        (&server, StatusCode::CREATED),
        (&public, StatusCode::CREATED),
    ] {
        let intent = public.post("/token-intents", card(NUMBER)).await.id();
        let converted = client
            .post("/tokens", json!({"token_intent_id": intent}))
            .await;
        assert_eq!(converted.status, status, "{}", text(&converted));
    }
    // Permission to update the target container is not enough, even if that shows nothing.
    let elsewhere = fixture
        .client_with_rules(&[
            ("/pci/", Transform::Redact, &[TokenRead]),
            ("/mine/", Transform::Redact, &[TokenCreate, TokenUpdate]),
        ])
        .await;
    let intent = public.post("/token-intents", card(NUMBER)).await.id();
    let new = json!({"token_intent_id": intent, "containers": ["/mine/"]});
    let converted = elsewhere.post("/tokens", new).await;
    let forbidden = StatusCode::FORBIDDEN;
    assert_eq!(converted.status, forbidden, "{}", text(&converted));
}
