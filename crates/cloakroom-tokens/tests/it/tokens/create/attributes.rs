//! Validation and defaults of attributes.

use cloakroom::access::Transform;
use cloakroom_testkit::{TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{count, create, one_of_each_type};

/// Covers 2.3, 3.6.
#[tokio::test]
async fn the_mask_is_returned_as_stored_and_defaults_to_that_of_the_type() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;
    let last4 = json!("{{ data | reveal_last: 4 }}");
    let card = json!({
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "expiration_year": "{{ data.expiration_year }}",
    });
    let bank = json!({
        "routing_number": "{{ data.routing_number }}",
        "account_number": "{{ data.account_number | reveal_last: 4 }}",
    });
    let expected = [
        None,
        Some(card.clone()),
        Some(last4.clone()),
        Some(card),
        Some(bank),
        Some(last4.clone()),
        Some(last4.clone()),
        Some(last4.clone()),
        Some(last4),
    ];

    for ((kind, data, _), mask) in one_of_each_type().into_iter().zip(expected) {
        let absent = create(&client, json!({"type": kind, "data": data})).await;
        let null = create(&client, json!({"type": kind, "data": data, "mask": null})).await;
        let own = json!({"type": kind, "data": data, "mask": {"a": ["{{ data | stringify | size }}", 1, null]}});
        let own = create(&client, own).await;

        assert_eq!(absent.body.get("mask"), mask.as_ref(), "{kind}");
        assert_eq!(null.body.get("mask"), mask.as_ref(), "{kind}");
        assert_eq!(absent.body.get("data").is_some(), mask.is_some(), "{kind}");
        assert_ne!(absent.body.get("data"), Some(&data), "{kind}");
        assert_eq!(
            own.body["mask"],
            json!({"a": ["{{ data | stringify | size }}", 1, null]}),
            "{kind}"
        );
        assert!(own.body["data"]["a"][0].is_number(), "{kind}: {}", own.body);
    }
    let masked = create(
        &client,
        json!({"type": "token", "data": "x", "mask": "{{ data }}"}),
    )
    .await;
    let path = format!("/tokens/{}", masked.id());
    let removed = client.patch(&path, json!({"mask": null})).await;
    assert_eq!(
        (removed.body.get("mask"), removed.body.get("data")),
        (None, None)
    );
}

/// Covers 3.1.
#[tokio::test]
async fn a_token_without_an_id_gets_a_random_uuid() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for id in [json!(null), json!("")] {
        let mut new = json!({"type": "token", "data": 1});
        new["id"] = id.clone();
        let response = client.post("/tokens", new).await;
        if id.is_null() {
            let given = uuid::Uuid::parse_str(&response.id()).unwrap();
            assert_eq!(given.get_version_num(), 4);
            assert_eq!(given.get_variant(), uuid::Variant::RFC4122);
            assert_eq!(given.hyphenated().to_string(), response.id());
        } else {
            assert_eq!(response.refused(), ["id"]);
        }
    }
}

/// Covers 3.2, 3.3, 3.4.
#[tokio::test]
async fn data_is_validated_by_its_type() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for (kind, valid, invalid) in one_of_each_type() {
        create(&client, json!({"type": kind, "data": valid})).await;
        let rejected = client
            .post("/tokens", json!({"type": kind, "data": invalid}))
            .await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{kind}");
        assert!(
            rejected.refused()[0].starts_with("data"),
            "{kind}: {}",
            rejected.body
        );
    }
    for value in [json!(false), json!(0), json!(""), json!([]), json!({})] {
        let created = create(&client, json!({"type": "token", "data": value})).await;
        assert_eq!(created.body["data"], value);
    }
    for kind in [
        json!("Token"),
        json!("TOKEN"),
        json!("cards"),
        json!(" card"),
        json!(""),
    ] {
        let rejected = client
            .post("/tokens", json!({"type": kind, "data": 1}))
            .await;
        assert_eq!(rejected.refused(), ["type"], "{kind}");
    }
}

/// Covers 3.7, 2.9.
#[tokio::test]
async fn containers_are_one_valid_path_in_lower_case() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("/{}/", "x".repeat(398));
    let too_long = format!("/{}/", "x".repeat(399));

    let valid = [
        (json!(["/"]), "/"),
        (json!(["/A/b-C/d_9/"]), "/a/b-c/d_9/"),
        (json!([long]), long.as_str()),
        (json!(null), "/general/high/"),
    ];
    for (containers, stored) in valid {
        let new = json!({"type": "token", "data": 1, "containers": containers});
        assert_eq!(
            create(&client, new).await.body["containers"],
            json!([stored])
        );
    }
    let invalid = [
        (json!([]), "containers"),
        (json!(["/a/", "/b/"]), "containers"),
        (json!([""]), "containers[0]"),
        (json!(["a/"]), "containers[0]"),
        (json!(["/a"]), "containers[0]"),
        (json!(["/a//b/"]), "containers[0]"),
        (json!(["/a b/"]), "containers[0]"),
        (json!(["/\u{e4}/"]), "containers[0]"),
        (json!(["/a]/"]), "containers[0]"),
        (json!(["/{{ data }}/"]), "containers[0]"),
        (json!([too_long]), "containers[0]"),
    ];
    for (containers, path) in invalid {
        let new = json!({"type": "token", "data": 1, "containers": containers});
        assert_eq!(
            client.post("/tokens", new).await.refused(),
            [path],
            "{containers}"
        );
    }
}

/// Covers 3.8, 2.10.
#[tokio::test]
async fn metadata_values_are_strings_and_nulls_are_dropped() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (json!(null), Ok(None)),
        (json!({}), Ok(None)),
        (json!({"a": null}), Ok(None)),
        (
            json!({"a": null, "b": "", "c": "\u{e4}"}),
            Ok(Some(json!({"b": "", "c": "\u{e4}"}))),
        ),
        (json!({"a": 1}), Err("metadata.a")),
        (json!({"a": true}), Err("metadata.a")),
        (json!({"a": {}}), Err("metadata.a")),
    ];
    for (metadata, expected) in cases {
        let response = client
            .post(
                "/tokens",
                json!({"type": "token", "data": 1, "metadata": metadata}),
            )
            .await;
        match expected {
            Ok(stored) => {
                let found = client.get(&format!("/tokens/{}", response.id())).await;
                assert_eq!(found.body.get("metadata"), stored.as_ref(), "{metadata}");
            }
            Err(path) => assert_eq!(response.refused(), [path], "{metadata}"),
        }
    }
}

/// Covers 3.19.
#[tokio::test]
async fn a_rejected_create_stores_nothing() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let with = |more: Value| {
        let mut new = json!({
            "type": "token",
            "data": {"a": 1},
            "metadata": {"k": "v"},
            "search_indexes": ["{{ data.a }}"],
            "deduplicate_token": true,
        });
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        new
    };
    create(
        &client,
        json!({"id": "taken", "type": "token", "data": "x", "search_indexes": ["{{ data }}"]}),
    )
    .await;
    let before = [
        count(&vault, "token").await,
        count(&vault, "term").await,
        count(&vault, "claim").await,
    ];

    let rejected = [
        (json!({"id": "taken"}), StatusCode::CONFLICT),
        (json!({"expires_at": "2020-01-01"}), StatusCode::BAD_REQUEST),
        (
            json!({"search_indexes": ["{{ data.a }}", "{{ data.b }}"]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"fingerprint_expression": "{{ data.b }}"}),
            StatusCode::BAD_REQUEST,
        ),
        (json!({"id": "{{ data.b }}"}), StatusCode::BAD_REQUEST),
        (
            json!({"metadata": {"pan": "4242424242424242"}}),
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (more, status) in rejected {
        let response = client.post("/tokens", with(more.clone())).await;
        assert_eq!(response.status, status, "{more}: {}", response.body);
        let after = [
            count(&vault, "token").await,
            count(&vault, "term").await,
            count(&vault, "claim").await,
        ];
        assert_eq!(after, before, "{more}");
    }
    create(&client, with(json!({}))).await;
    assert_eq!(count(&vault, "claim").await, 1);
}
