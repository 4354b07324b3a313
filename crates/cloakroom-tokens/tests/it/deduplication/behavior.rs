//! Behavior on a duplicate: `read_existing`, `update_existing`, and the response.

use std::time::{Duration, Instant};

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{counts, create, deduplicated, updating_tenant};

/// Covers 7.5, 7.10, 7.11, 3.18.
#[tokio::test]
async fn read_existing_does_not_change_the_existing_token() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let more = json!({"id": "first one", "metadata": {"a": "1"}});
    let first = create(&client, deduplicated(&json!("secret"), more)).await;
    create(
        &client,
        json!({"id": "taken", "type": "token", "data": "other"}),
    )
    .await;
    let path = "/tokens/first%20one";
    let before = client.get(path).await;

    let ignored = [
        json!({"id": "another"}),
        json!({"id": "taken"}),
        json!({"id": "{{ data }}"}),
        json!({
            "id": "another",
            "mask": "{{ data | reveal_last: 2 }}",
            "metadata": {"a": "2", "b": "3"},
            "search_indexes": ["{{ data }}"],
            "expires_at": "2040-01-01",
        }),
    ];
    for more in ignored {
        let duplicate = create(&client, deduplicated(&json!("secret"), more.clone())).await;
        let mut expected = before.body.clone();
        expected["_extras"] =
            json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
        assert_eq!(duplicate.body, expected, "{more}");
        assert_eq!(duplicate.id(), first.id());
    }
    assert_eq!(client.get(path).await.body, before.body);
    assert_eq!(
        client.get("/tokens/another").await.status,
        StatusCode::NOT_FOUND
    );
    // Invalid attributes are rejected even if a duplicate exists.
    let broken = client
        .post(
            "/tokens",
            deduplicated(&json!("secret"), json!({"id": "a/b"})),
        )
        .await;
    assert_eq!(broken.refused(), ["id"]);
    assert_eq!(counts(&vault).await, (2, 1));
}

/// Covers 7.6, 7.7.
#[tokio::test]
async fn update_existing_merges_data_and_metadata() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let first = vault.client(&tenant, everything(Transform::Reveal)).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let second = vault.client_with(Some(&holder.key));
    let card = |data: Value, metadata: Value| {
        json!({"type": "card", "data": data,
        "metadata": metadata, "deduplicate_token": true})
    };

    let data = json!({"number": "4242424242424242", "expiration_month": 4, "name": "Ada"});
    let created = create(&first, card(data, json!({"a": "1", "b": "2"}))).await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": "12", "expiration_year": 2040});
    let duplicate = create(&second, card(data, json!({"b": "3", "c": "4"}))).await;
    let found = first.get(&format!("/tokens/{}", created.id())).await;

    let merged = json!({
        "number": "4242424242424242", "expiration_month": 12, "name": "Ada", "expiration_year": 2040,
    });
    assert_eq!(duplicate.id(), created.id());
    let extras = json!({"deduplicated": true, "deduplication_behavior": "update_existing"});
    assert_eq!(duplicate.body["_extras"], extras);
    assert_eq!(duplicate.body["data"], merged);
    assert_eq!(
        duplicate.body["metadata"],
        json!({"a": "1", "b": "3", "c": "4"})
    );
    assert_eq!(
        duplicate.body["modified_by"],
        holder.application.to_string()
    );
    assert_eq!(duplicate.body["created_by"], created.body["created_by"]);
    let mut body = duplicate.body.clone();
    body.as_object_mut().unwrap().shift_remove("_extras");
    assert_eq!(found.body, body);
    assert_eq!(counts(&vault).await, (1, 1));
    // Searches find the merged values and no longer the replaced ones.
    for (query, hits) in [
        ("metadata.b:3", 1),
        ("metadata.c:4", 1),
        ("metadata.b:2", 0),
    ] {
        let page = first
            .post("/v2/tokens/search", json!({"query": query}))
            .await;
        assert_eq!(page.body["data"].as_array().unwrap().len(), hits, "{query}");
    }
}

/// Covers 7.12, 7.10.
#[tokio::test]
async fn update_existing_applies_only_the_attributes_sent() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let data = json!({"a": "x"});
    let first = json!({
        "mask": {"a": "{{ data.a }}"},
        "search_indexes": ["{{ data.a }}"],
        "fingerprint_expression": "{{ data.a }}",
        "expires_at": "2040-01-01",
        "metadata": {"k": "v"},
    });
    let created = create(&client, deduplicated(&data, first.clone())).await;
    let unchanged = [
        "mask",
        "search_indexes",
        "fingerprint_expression",
        "expires_at",
        "metadata",
        "fingerprint",
    ];

    let bare = json!({"fingerprint_expression": "{{ data.a }}", "id": "ignored"});
    let untouched = create(&client, deduplicated(&data, bare)).await;
    assert_eq!(untouched.id(), created.id());
    for name in unchanged {
        assert_eq!(untouched.body[name], created.body[name], "{name}");
    }

    let more = json!({
        "mask": {"b": "{{ data.b }}"},
        "search_indexes": ["{{ data.b }}"],
        "fingerprint_expression": "{{ data.a | append: '' }}",
        "expires_at": "2041-01-01T00:00:00+01:00",
    });
    let changed = create(
        &client,
        deduplicated(&json!({"a": "x", "b": "y"}), more.clone()),
    )
    .await;
    assert_eq!(changed.id(), created.id());
    assert_eq!(changed.body["data"], json!({"a": "x", "b": "y"}));
    assert_eq!(
        changed.body["mask"],
        json!({"a": "{{ data.a }}", "b": "{{ data.b }}"})
    );
    for name in ["search_indexes", "fingerprint_expression", "expires_at"] {
        assert_eq!(changed.body[name], more[name], "{name}");
    }
    assert_eq!(changed.body["metadata"], json!({"k": "v"}));
    let hits = async |value: &str| {
        let query = json!({"query": format!("data:{value}")});
        client.post("/v2/tokens/search", query).await.body["data"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((hits("x").await, hits("y").await), (0, 1));

    // The merged token is validated like an update: its search indexes and its expiry.
    for (more, path) in [
        (
            json!({"search_indexes": ["{{ data.c }}"]}),
            "search_indexes[0]",
        ),
        (json!({"expires_at": "2020-01-01"}), "expires_at"),
    ] {
        let mut more = more;
        more["fingerprint_expression"] = json!("{{ data.a }}");
        let rejected = client
            .post("/tokens", deduplicated(&data, more.clone()))
            .await;
        assert_eq!(rejected.refused(), [path], "{more}: {}", rejected.body);
    }
    assert_eq!(counts(&vault).await, (1, 1));
}

/// Covers 7.8, 7.9.
#[tokio::test]
async fn callers_without_read_permission_learn_only_that_a_duplicate_exists() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;

    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
        let new = json!({
            "type": "card",
            "data": {"number": "4242424242424242"},
            "metadata": {"k": "v"},
            "containers": ["/a/"],
            "expires_at": "2040-01-01",
            "deduplicate_token": true,
        });
        let created = create(&owner, new.clone()).await;
        // Without `token:update` on the existing token, nothing is merged into it.
        let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
        let mut redacted = json!({"_extras": extras});
        for name in ["id", "type", "tenant_id", "fingerprint", "containers"] {
            redacted[name] = created.body[name].clone();
        }

        let reading = |container: &str, transform| Grants {
            rules: vec![rule(1, container, transform, &[TokenRead])],
            ..grants(&[TokenCreate])
        };
        let without_read = [
            grants(&[TokenCreate]),
            reading("/b/", Transform::Reveal),
            reading("/a/b/", Transform::Reveal),
        ];
        for granted in without_read {
            let client = vault.client(&tenant, granted).await;
            let duplicate = create(&client, new.clone()).await;
            assert_eq!(duplicate.body, redacted, "{behavior}");
        }
        let public = vault
            .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
            .await;
        let duplicate = create(&vault.client_with(Some(&public.key)), new.clone()).await;
        assert_eq!(duplicate.body, redacted, "{behavior}");

        // The transform of the read permission applies, not that of the create permission.
        let shown = [
            (Transform::Reveal, Some(json!("4242424242424242"))),
            (Transform::Mask, Some(json!("XXXXXXXXXXXX4242"))),
            (Transform::Redact, None),
        ];
        for (transform, number) in shown {
            let client = vault.client(&tenant, reading("/", transform)).await;
            let duplicate = create(&client, new.clone()).await;
            let read = client.get(&format!("/tokens/{}", created.id())).await;
            let mut expected = read.body.clone();
            expected["_extras"] = extras.clone();
            assert_eq!(duplicate.body, expected, "{behavior} {transform:?}");
            let data = duplicate
                .body
                .get("data")
                .map(|data| data["number"].clone());
            assert_eq!(data, number, "{behavior} {transform:?}");
            assert_eq!(duplicate.body["metadata"], json!({"k": "v"}));
        }
    }
}

/// Covers 7.4, 7.6.
#[tokio::test]
async fn data_is_merged_into_the_oldest_token_even_if_another_holds_the_claim() {
    let vault = TestVault::start().await;
    let tenant = updating_tenant(&vault).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let older = create(&client, json!({"type": "token", "data": "other"})).await;
    let claimant = create(&client, deduplicated(&json!("x"), json!({}))).await;
    // An update without deduplication may make the older token equal to the one that holds the claim.
    let patch = json!({"data": "x", "deduplicate_token": false});
    let path = format!("/tokens/{}", older.id());
    assert_eq!(client.patch(&path, patch).await.status, StatusCode::OK);

    let started_at = Instant::now();
    let duplicate = create(
        &client,
        deduplicated(&json!("x"), json!({"metadata": {"k": "v"}})),
    )
    .await;

    assert_ne!(older.id(), claimant.id());
    assert_eq!(
        (duplicate.id(), &duplicate.body["metadata"]["k"]),
        (older.id(), &json!("v"))
    );
    assert!(started_at.elapsed() < Duration::from_secs(5));
    assert_eq!(counts(&vault).await, (2, 1));
}

/// Everybody has the key of a public application, which must not find a value by creating tokens of guesses.
///
/// Covers 7.17.
#[tokio::test]
async fn public_applications_compare_card_numbers_only() {
    use Permission::{TokenCreate, TokenIntentCreate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let granted = grants(&[TokenCreate, TokenIntentCreate]);
    let public = vault.holder(&tenant, ApplicationKind::Public, granted);
    let public = vault.client_with(Some(&public.await.key));
    let card = json!({"number": "4242424242424242", "holder": "0417"});
    let holder = json!("{{ data.number }} {{ data.holder }}");
    let cases = [
        (json!({"type": "token", "data": "0417"}), false),
        (
            json!({"type": "social_security_number", "data": "123456789"}),
            false,
        ),
        (
            json!({"type": "card", "data": card, "fingerprint_expression": holder}),
            false,
        ),
        (
            json!({"type": "card_number", "data": "4242424242424242"}),
            true,
        ),
    ];

    for (mut token, is_compared) in cases {
        token["deduplicate_token"] = json!(true);
        let existing = create(&owner, token.clone()).await;
        let guess = create(&public, token.clone()).await;

        assert!(existing.body["fingerprint"].is_string(), "{token}");
        assert_eq!(guess.id() == existing.id(), is_compared, "{token}");
        assert_eq!(
            guess.body.get("fingerprint").is_some(),
            is_compared,
            "{token}"
        );
    }
    let hidden = json!({"type": "token", "data": "0417"});
    let intent = public.post("/token-intents", hidden).await.id();
    let convert = json!({"token_intent_id": intent, "deduplicate_token": true});
    let converted = create(&public, convert).await;
    assert_eq!(converted.body["_extras"]["deduplicated"], false);
}
