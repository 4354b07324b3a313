//! Creates and updates disclose and change existing tokens only as permitted.

use cloakroom::access::Permission::{TokenCreate, TokenIntentCreate, TokenRead, TokenUpdate};
use cloakroom::access::Transform;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::json;

use super::{Fixture, NUMBER, card, text};

/// F4: a create with deduplication changed, unmasked and expired the existing token.
#[tokio::test]
async fn a_create_changes_an_existing_token_only_with_update_permission() {
    let fixture = Fixture::start().await;
    let creator = fixture
        .public(grants(&[TokenCreate, TokenIntentCreate]))
        .await;
    let before = fixture.owner.get(&fixture.path()).await;
    let now = fixture.vault.vault.clock.now().await.unwrap();
    let in_two_seconds = (now + std::time::Duration::from_secs(2)).to_string();

    let mut intent = card(NUMBER);
    intent["data"]["expiration_month"] = json!(1);
    let intent = creator.post("/token-intents", intent).await.id();
    let new = json!({
        "token_intent_id": intent, "deduplicate_token": true,
        "metadata": {"owner": "mallory"}, "expires_at": in_two_seconds,
    });
    let duplicate = creator.post("/tokens", new.clone()).await;

    assert_eq!(
        duplicate.status,
        StatusCode::CREATED,
        "{}",
        text(&duplicate)
    );
    assert_eq!(duplicate.id(), fixture.card);
    assert_eq!(
        duplicate.body["_extras"]["deduplication_behavior"],
        "read_existing"
    );
    assert_eq!(duplicate.body.get("data"), None);
    let after = fixture.owner.get(&fixture.path()).await;
    assert_eq!(after.body, before.body);
    // The intent is consumed nevertheless.
    let again = creator.post("/tokens", new).await;
    assert_eq!(again.refused(), ["token_intent_id"]);
    let gone = fixture.owner.get(&format!("/token-intents/{intent}")).await;
    assert_ne!(gone.status, StatusCode::OK);
}

/// F4: a merge by a caller with `token:update` neither shortens the life of a token nor changes its mask.
#[tokio::test]
async fn a_merging_create_neither_unmasks_nor_shortens_a_token() {
    let fixture = Fixture::start().await;
    let merges = grants(&[TokenCreate, TokenUpdate, TokenRead]);
    let server = fixture.vault.client(&fixture.tenant, merges).await;
    let merging = cloakroom::tenants::TenantChanges {
        settings: vec![(
            "token_deduplication_behavior".to_owned(),
            json!("update_existing"),
        )],
        ..Default::default()
    };
    cloakroom::tenants::update_as_operator(&fixture.vault.vault, fixture.tenant.id, &merging)
        .await
        .unwrap();
    let mut new = card(NUMBER);
    for (name, value) in [
        ("deduplicate_token", json!(true)),
        ("mask", json!("{{ data }}")),
        ("metadata", json!({"order": "7"})),
        ("expires_at", json!("2099-01-01T00:00:00Z")),
    ] {
        new[name] = value;
    }

    let merged = server.post("/tokens", new).await;

    assert_eq!(merged.id(), fixture.card);
    assert_eq!(
        merged.body["_extras"]["deduplication_behavior"],
        "update_existing"
    );
    assert_eq!(merged.body["metadata"], json!({"order": "7"}));
    assert_eq!(merged.body["data"]["number"], "XXXXXXXXXXXX1053");
    assert_eq!(merged.body.get("expires_at"), None);
    assert_eq!(merged.body["search_indexes"], json!([]));
    let after = fixture.owner.get(&fixture.path()).await;
    assert_eq!(
        after.body["mask"]["number"],
        "{{ data.number | reveal_last: 4 }}"
    );

    // An existing expiry is extended and never shortened.
    let mut expiring = card("4000056655665556");
    expiring["expires_at"] = json!("2099-01-01T00:00:00Z");
    let id = fixture.owner.post("/tokens", expiring.clone()).await.id();
    for (requested, expected) in [("2098", "2099"), ("2100", "2100")] {
        expiring["deduplicate_token"] = json!(true);
        expiring["expires_at"] = json!(format!("{requested}-01-01T00:00:00Z"));
        let merged = server.post("/tokens", expiring.clone()).await;
        assert_eq!(merged.id(), id);
        let expiry = merged.body["expires_at"].as_str().unwrap();
        assert!(expiry.starts_with(expected), "{requested}: {expiry}");
    }
}

/// F15: moving a token to a container where the caller sees more turned `update` into `reveal`.
#[tokio::test]
async fn a_move_discloses_no_more_than_both_containers_allow() {
    let fixture = Fixture::start().await;
    let path = fixture.path();
    let mover = fixture
        .client_with_rules(&[
            ("/pci/", Transform::Redact, &[TokenUpdate]),
            ("/mine/", Transform::Reveal, &[TokenRead, TokenUpdate]),
        ])
        .await;
    let moved = mover.patch(&path, json!({"containers": ["/mine/"]})).await;
    assert_eq!(moved.status, StatusCode::FORBIDDEN, "{}", text(&moved));

    let sees = fixture
        .client_with_rules(&[
            ("/pci/", Transform::Reveal, &[TokenRead, TokenUpdate]),
            ("/shared/", Transform::Redact, &[TokenUpdate]),
        ])
        .await;
    let moved = sees.patch(&path, json!({"containers": ["/shared/"]})).await;
    assert_eq!(moved.status, StatusCode::OK);
    assert_eq!(moved.body.get("data"), None, "{}", text(&moved));

    // The other way round: an update shows less in the container that the token leaves.
    let reads = fixture
        .client_with_rules(&[
            ("/shared/", Transform::Reveal, &[TokenRead]),
            ("/shared/", Transform::Redact, &[TokenUpdate]),
            ("/mine/", Transform::Reveal, &[TokenUpdate]),
        ])
        .await;
    let moved = reads.patch(&path, json!({"containers": ["/mine/"]})).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", text(&moved));
    assert_eq!(moved.body.get("data"), None, "{}", text(&moved));
}
