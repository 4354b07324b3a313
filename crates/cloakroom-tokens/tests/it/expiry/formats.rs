//! Formats of `expires_at`.

use std::time::Duration;

use cloakroom::access::Transform;
use cloakroom_testkit::{TestVault, everything};
use serde_json::json;

use super::{count, create, database_time};

/// Covers 8.1, 8.2, 8.3, 8.4, 8.5, 8.6, 8.7.
#[tokio::test]
async fn every_documented_format_is_parsed_and_keeps_its_offset() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let cases = [
        ("2040-08-26T19:23:57Z", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23:57+00:00", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23:57-07:00", "2040-08-26T19:23:57-07:00"),
        ("2040-08-26T19:23:57.5+05:30", "2040-08-26T19:23:57.5+05:30"),
        (
            "2040-08-26T19:23:57.1234567Z",
            "2040-08-26T19:23:57.123456+00:00",
        ),
        ("2040-08-26T19:23:57", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23", "2040-08-26T19:23:00+00:00"),
        ("8/26/2040 7:23:57 PM -07:00", "2040-08-26T19:23:57-07:00"),
        ("8/26/2040 7:23:57 PM +02:00", "2040-08-26T19:23:57+02:00"),
        ("8/26/2040 7:23:57 AM", "2040-08-26T07:23:57+00:00"),
        ("8/26/2040 19:23:57 -07:00", "2040-08-26T19:23:57-07:00"),
        ("8/26/2040 7:23:57", "2040-08-26T07:23:57+00:00"),
        ("8/26/2040 19:23", "2040-08-26T19:23:00+00:00"),
        ("8/26/2040 7:23 PM +02:00", "2040-08-26T19:23:00+02:00"),
        ("12/1/2040 12:00:00 AM", "2040-12-01T00:00:00+00:00"),
        ("12/01/2040 12:00:00 PM", "2040-12-01T12:00:00+00:00"),
        ("8/26/2040", "2040-08-26T00:00:00+00:00"),
        ("08/06/2040", "2040-08-06T00:00:00+00:00"),
        ("2040-08-26", "2040-08-26T00:00:00+00:00"),
        ("2040-02-29", "2040-02-29T00:00:00+00:00"),
        ("9999-12-30T12:00:00Z", "9999-12-30T12:00:00+00:00"),
    ];
    let database = vault.database.connect().await;

    for (written, returned) in cases {
        let created = create(&client, json!(written)).await;
        assert_eq!(
            created.body["expires_at"], returned,
            "{written}: {}",
            created.body
        );
        let found = client.get(&format!("/tokens/{}", created.id())).await;
        assert_eq!(found.body["expires_at"], returned, "{written}");
        let id = uuid::Uuid::parse_str(&created.id()).unwrap();
        let sql = "select expires_at = $2::text::timestamptz from token where token_id = $1";
        let row = database.query_one(sql, &[&id, &returned]).await.unwrap();
        assert!(row.get::<_, bool>(0), "{written}");
    }
    let never = create(&client, json!(null)).await;
    assert_eq!(never.body.get("expires_at"), None);
    let without_expiry = "select count(*) from token where expires_at is null";
    assert_eq!(
        database
            .query_one(without_expiry, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
}

/// Values that are not a time in the future.
const INVALID: [&str; 19] = [
    "2020-01-01T00:00:00Z",
    "2020-01-01",
    "1/1/2020",
    "1/1/2020 1:00:00 PM",
    "0001-01-01T00:00:00Z",
    "",
    " ",
    "soon",
    "1893456000",
    "2040-02-30",
    "2039-02-29",
    "13/1/2040",
    "1/32/2040",
    "8/26/40",
    "8/26/2040 19:23:57 PM",
    "8/26/2040 24:23:57",
    "2040-08-26T25:00:00Z",
    "2040-08-26T19:23:57+99:00",
    "26.8.2040",
];

/// Covers 8.8.
#[tokio::test]
async fn past_and_invalid_expiries_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let settings = [
        ("token_deduplication_behavior", "update_existing"),
        ("deduplicate_tokens", "true"),
    ];
    let merging = vault.tenant_with(&settings).await;
    let merging = vault.client(&merging, everything(Transform::Reveal)).await;
    create(&merging, json!(null)).await;
    let existing = format!(
        "/tokens/{}",
        create(&client, json!("2040-01-01")).await.id()
    );
    let database = vault.database.connect().await;
    let just_expired = (database_time(&database).await - Duration::from_secs(1)).to_string();

    for written in INVALID.into_iter().chain([just_expired.as_str()]) {
        // Creates with deduplication use other statements, which must check the expiry as well.
        let claiming = json!({
            "type": "token", "data": "new", "expires_at": written, "deduplicate_token": true,
        });
        let responses = [
            create(&client, json!(written)).await,
            client.post("/tokens", claiming).await,
            create(&merging, json!(written)).await,
            client
                .patch(&existing, json!({"expires_at": written}))
                .await,
        ];
        for response in responses {
            assert_eq!(
                response.refused(),
                ["expires_at"],
                "{written}: {}",
                response.body
            );
        }
    }
    for value in [json!(2_040_000_000), json!(true), json!({})] {
        let created = create(&client, value.clone()).await;
        assert_eq!(
            created.refused(),
            ["expires_at"],
            "{value}: {}",
            created.body
        );
    }
    assert_eq!(
        (count(&vault, "token").await, count(&vault, "claim").await),
        (2, 1)
    );
}
