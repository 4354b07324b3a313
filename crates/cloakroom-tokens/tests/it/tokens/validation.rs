//! Validation of new tokens, and the containers that they are created in.

use std::time::Duration;

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, grants, rule};
use http::StatusCode;
use serde_json::json;

use super::card;

/// Covers 1.1, 3.14.
#[tokio::test]
async fn creating_requires_permission_in_the_container() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/pci/",
        Transform::Mask,
        &[Permission::TokenCreate],
    )];
    let client = vault.client(&tenant, granted).await;

    let inside = client.post("/tokens", card()).await;
    let outside = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    assert_eq!(inside.status, StatusCode::CREATED);
    assert_eq!(outside.status, StatusCode::FORBIDDEN);
    let stored: i64 = vault
        .database
        .connect()
        .await
        .query_one("select count(*) from token", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(stored, 1);
}

/// Covers 9.5, 9.11.
#[tokio::test]
async fn chosen_ids_are_unique() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = cloakroom::ids::new_uuid().to_string();
    let new = json!({"id": id, "type": "token", "data": "first"});

    let first = client.post("/tokens", new.clone()).await;
    let second = client.post("/tokens", new).await;

    assert_eq!((first.status, first.id()), (StatusCode::CREATED, id));
    assert_eq!(second.status, StatusCode::CONFLICT);
}

/// Covers 8.7.
#[tokio::test]
async fn expiries_are_returned_with_their_offset() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for (expires_at, expected) in [
        ("8/26/2030 7:23:57 PM -07:00", "2030-08-26T19:23:57-07:00"),
        ("8/26/2030 19:23 -07:00", "2030-08-26T19:23:00-07:00"),
    ] {
        let created = create_expiring(&client, expires_at).await;
        let found = client.get(&format!("/tokens/{}", created.id())).await;

        assert_eq!(created.body["expires_at"], expected);
        assert_eq!(found.body["expires_at"], expected);
    }
}

/// Covers 8.8.
#[tokio::test]
async fn past_and_malformed_expiries_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for expires_at in ["2020-01-01T00:00:00Z", "-005000-01-01", "soon"] {
        let rejected = create_expiring(&client, expires_at).await;
        assert_eq!(rejected.refused(), ["expires_at"], "{expires_at}");
    }
}

/// Covers 8.9, 9.14.
#[tokio::test]
async fn expired_tokens_are_not_found_and_free_their_id() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let soon = std::time::SystemTime::now() + Duration::from_millis(3000);
    let soon = jiff::Timestamp::try_from(soon).unwrap();

    let brief = create_expiring(&client, &soon.to_string()).await;
    let path = format!("/tokens/{}", brief.id());
    let before = client.get(&path).await;

    assert_eq!(before.status, StatusCode::OK);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while client.get(&path).await.status != StatusCode::NOT_FOUND {
        assert!(
            std::time::Instant::now() < deadline,
            "the token did not expire"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
    // The id is free again, even if the row is not swept yet.
    let again = json!({"id": brief.id(), "type": "token", "data": "again"});
    assert_eq!(
        client.post("/tokens", again).await.status,
        StatusCode::CREATED
    );
    assert_eq!(client.get(&path).await.body["data"], "again");
}

async fn create_expiring(client: &Client, expires_at: &str) -> TestResponse {
    let new = json!({"type": "token", "data": 1, "expires_at": expires_at});
    client.post("/tokens", new).await
}

/// Covers 3.13.
#[tokio::test]
async fn all_invalid_fields_are_reported_without_their_values() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = json!({
        "id": "4242/nope",
        "type": "card",
        "data": {"number": "4242424242424241", "expiration_month": 13, "cvc": "9999999"},
        "containers": ["pci"],
        "metadata": {"pan": "4242424242424242"},
        "mask": "{{ data | no_such_filter }}",
        "expires_at": "never",
    });

    let response = client.post("/tokens", new).await;

    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        response.refused(),
        [
            "containers[0]",
            "data.cvc",
            "data.expiration_month",
            "data.number",
            "expires_at",
            "id",
            "mask",
            "metadata.pan",
        ]
    );
    let text = String::from_utf8(response.bytes).unwrap();
    for value in [
        "4242424242424241",
        "4242424242424242",
        "9999999",
        "4242/nope",
        "never",
    ] {
        assert!(!text.contains(value), "{value} in {text}");
    }
}

/// Covers 3.5.
#[tokio::test]
async fn intents_with_data_are_rejected_and_unknown_attributes_are_ignored() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let id = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let new = json!({"type": "token", "data": 1, "token_intent_id": id});
    let rejected = client.post("/tokens", new).await;
    assert_eq!(rejected.refused(), ["data"]);
    let harmless = json!({
        "type": "token",
        "data": 1,
        "search_indexes": [],
        "deduplicate_token": false,
        "fingerprint_expression": null,
        "owner_merchant_id": null,
    });
    assert_eq!(
        client.post("/tokens", harmless).await.status,
        StatusCode::CREATED
    );
}

/// Covers 2.17, 3.12.
#[tokio::test]
async fn the_deprecated_privacy_attribute_sets_the_default_container() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (
            json!({"classification": "pii", "impact_level": "low"}),
            json!(null),
            Ok("/pii/low/"),
        ),
        (
            json!({"classification": "bank"}),
            json!(null),
            Ok("/bank/high/"),
        ),
        (
            json!({"impact_level": "moderate"}),
            json!(null),
            Ok("/general/moderate/"),
        ),
        (
            json!({"restriction_policy": "redact"}),
            json!(null),
            Ok("/general/high/"),
        ),
        (
            json!({"classification": "pii"}),
            json!(["/mine/"]),
            Ok("/mine/"),
        ),
        (
            json!({"classification": "PII"}),
            json!(null),
            Err("privacy.classification"),
        ),
        (
            json!({"impact_level": "none"}),
            json!(null),
            Err("privacy.impact_level"),
        ),
    ];
    for (privacy, containers, expected) in cases {
        let new = json!({"type": "token", "data": 1, "privacy": privacy, "containers": containers});
        let created = client.post("/tokens", new).await;
        match expected {
            Ok(container) => {
                assert_eq!(created.body["containers"], json!([container]), "{privacy}")
            }
            Err(path) => assert_eq!(created.refused(), [path], "{privacy}"),
        }
        assert_eq!(created.body.get("privacy"), None);
    }
}

/// Covers 3.2, 3.3, 3.7.
#[tokio::test]
async fn type_and_data_are_required() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (json!({}), vec!["data", "type"]),
        (json!({"type": "token"}), vec!["data"]),
        (json!({"type": "token", "data": null}), vec!["data"]),
        (json!({"data": 1}), vec!["type"]),
        (json!({"type": "Card", "data": 1}), vec!["type"]),
        (
            json!({"type": "token", "data": 1, "containers": []}),
            vec!["containers"],
        ),
        (
            json!({"type": "token", "data": 1, "containers": ["/a/", "/b/"]}),
            vec!["containers"],
        ),
    ];
    for (new, invalid) in cases {
        assert_eq!(
            client.post("/tokens", new.clone()).await.refused(),
            invalid,
            "{new}"
        );
    }
}

#[tokio::test]
async fn concurrent_creates_share_a_new_container() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = |n: usize| {
        let client = client.clone();
        async move {
            let container = format!("/fresh/{}/", n % 32);
            let new = json!({"type": "token", "data": n, "containers": [container]});
            client.post("/tokens", new).await.status
        }
    };

    let mut requests = tokio::task::JoinSet::new();
    (0..64).for_each(|n| {
        requests.spawn(create(n));
    });
    let statuses = requests.join_all().await;

    assert!(
        statuses.iter().all(|status| *status == StatusCode::CREATED),
        "{statuses:?}"
    );
    let row = vault.database.connect().await;
    let row = row
        .query_one(
            "select count(*), count(distinct container_id) from container",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (32, 32));
}

#[tokio::test]
async fn mask_size_is_limited() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = async |leaves: usize| {
        let mask = vec!["{{ data | reveal_last: 4 }}"; leaves];
        client
            .post(
                "/tokens",
                json!({"type": "token", "data": "x", "mask": mask}),
            )
            .await
    };

    assert_eq!(create(500).await.status, StatusCode::CREATED);
    assert_eq!(create(600).await.refused(), ["mask"]);
}
