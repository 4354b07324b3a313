//! Converting intents into tokens.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom::ids;
use cloakroom_testkit::{TestDatabase, TestVault, grants, rule};
use http::StatusCode;
use serde_json::json;

use super::{all, card, client, rows, until_expired};

/// Covers 18.5, 18.6.
#[tokio::test]
async fn intents_are_converted_with_every_attribute_and_consumed() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let intent = client.post("/token-intents", card()).await.id();

    let request = json!({
        "token_intent_id": intent,
        "id": "order {{ data.number | alias_card }}",
        "metadata": {"order": "1001"},
        "containers": ["/checkout/"],
        "mask": {"number": "{{ data.number | reveal_last: 4 }}"},
        "search_indexes": ["{{ data.number | last4 }}"],
        "fingerprint_expression": "{{ data.number }}",
        "deduplicate_token": false,
        "expires_at": "2999-01-01T00:00:00Z",
    });
    let token = client.post("/tokens", request.clone()).await;

    assert_eq!(token.status, StatusCode::CREATED, "{}", token.body);
    assert!(token.id().starts_with("order "));
    assert_eq!(token.body["containers"], json!(["/checkout/"]));
    assert_eq!(token.body["metadata"], json!({"order": "1001"}));
    assert_eq!(token.body["expires_at"], "2999-01-01T00:00:00+00:00");
    let read = client
        .get(&format!("/tokens/{}", token.id().replace(' ', "%20")))
        .await;
    assert_eq!(
        read.body["data"],
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030}),
        "the security code is not copied"
    );
    assert_eq!(rows(&vault, "token_intent").await, 0);
    assert_eq!(rows(&vault, "security_code").await, 0);
    let again = client.post("/tokens", request).await;
    assert_eq!(again.refused(), ["token_intent_id"]);
    assert_eq!(
        client.get(&format!("/token-intents/{intent}")).await.status,
        StatusCode::NOT_FOUND
    );
}

/// Covers 18.7.
#[tokio::test]
async fn invalid_conversions_are_rejected_by_attribute() {
    let vault = TestVault::start().await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let client = client(&vault, &tenant).await;
    let foreign = self::client(&vault, &other)
        .await
        .post("/token-intents", card())
        .await
        .id();
    let intent = client.post("/token-intents", card()).await.id();

    let cases = [
        (
            json!({"token_intent_id": ids::new_uuid()}),
            vec!["token_intent_id"],
        ),
        (json!({"token_intent_id": foreign}), vec!["token_intent_id"]),
        (
            json!({"token_intent_id": "no id at all"}),
            vec!["token_intent_id"],
        ),
        (
            json!({"token_intent_id": intent, "data": "x"}),
            vec!["data"],
        ),
        (
            json!({"token_intent_id": intent, "type": "bank"}),
            vec!["type"],
        ),
        (
            json!({"token_intent_id": intent, "expires_at": "2001-01-01T00:00:00Z"}),
            vec!["expires_at"],
        ),
        (
            json!({"token_intent_id": intent, "containers": ["x"]}),
            vec!["containers"],
        ),
    ];
    for (body, invalid) in cases {
        let response = client.post("/tokens", body.clone()).await;
        assert_eq!(
            response.status,
            StatusCode::BAD_REQUEST,
            "{body}: {}",
            response.body
        );
        assert_eq!(
            response
                .refused()
                .iter()
                .map(|it| it.split('[').next().unwrap())
                .collect::<Vec<_>>(),
            invalid,
            "{body}"
        );
    }
    let same_type = json!({"token_intent_id": intent, "type": "card"});
    assert_eq!(
        client.post("/tokens", same_type).await.status,
        StatusCode::CREATED
    );
}

/// Covers 11.15, 18.8.
#[tokio::test]
async fn tokenize_converts_intents_beside_values() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let first = client.post("/token-intents", card()).await.id();
    let second = client.post("/token-intents", card()).await.id();

    let twice = json!([{"token_intent_id": first}, {"token_intent_id": first}]);
    let rejected = client.post("/tokenize", twice).await;
    assert_eq!(rejected.refused(), ["[1].token_intent_id"]);
    assert_eq!(rows(&vault, "token").await, 0);

    let document = json!({
        "card": {"token_intent_id": first, "deduplicate_token": true},
        "equal": {"token_intent_id": second, "deduplicate_token": true},
        "note": "hello",
    });
    let tokenized = client.post("/tokenize", document).await;
    assert_eq!(tokenized.status, StatusCode::OK, "{}", tokenized.body);
    assert_eq!(tokenized.body["card"]["id"], tokenized.body["equal"]["id"]);
    assert_eq!(tokenized.body["card"]["type"], "card");
    assert_eq!(rows(&vault, "token_intent").await, 0, "both are consumed");
    assert_eq!(rows(&vault, "token").await, 2);
}

/// Covers 7.16, 18.9.
#[tokio::test]
async fn deduplication_merges_an_intent_into_the_existing_token() {
    let vault = TestVault::start().await;
    // Applies even if the tenant's behavior is to return the existing token.
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = client(&vault, &tenant).await;
    let mut existing = card();
    existing["metadata"] = json!({"kept": "yes", "order": "1"});
    existing["data"]["expiration_year"] = json!(2029);
    // The default fingerprint covers the expiry, too.
    existing["fingerprint_expression"] = json!("{{ data.number }}");
    let token = client.post("/tokens", existing).await;
    let intent = client.post("/token-intents", card()).await.id();

    let converted = client
        .post(
            "/tokens",
            json!({
                "token_intent_id": intent,
                "metadata": {"order": "2"},
                "fingerprint_expression": "{{ data.number }}",
            }),
        )
        .await;

    assert_eq!(converted.status, StatusCode::CREATED, "{}", converted.body);
    assert_eq!(converted.id(), token.id());
    assert_eq!(converted.body["_extras"]["deduplicated"], true);
    assert_eq!(
        converted.body["_extras"]["deduplication_behavior"],
        "update_existing"
    );
    assert_eq!(
        converted.body["metadata"],
        json!({"kept": "yes", "order": "2"})
    );
    assert_eq!(converted.body["data"]["expiration_year"], 2030);
    assert_eq!(rows(&vault, "token_intent").await, 0);
    assert_eq!(rows(&vault, "token").await, 1);
}

/// The first request wins, on any node.
///
/// Covers 18.10.
#[tokio::test]
async fn intents_are_converted_once_under_concurrency() {
    let vault = TestVault::start_with_long_timeouts().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let holder = vault.holder(&tenant, ApplicationKind::Private, all()).await;
    let nodes = [
        vault.client_with(Some(&holder.key)),
        other.client_with(Some(&holder.key)),
    ];
    for round in 0..5 {
        let intent = nodes[0].post("/token-intents", card()).await.id();
        let mut requests = tokio::task::JoinSet::new();
        for index in 0..16 {
            let (client, intent) = (nodes[index % 2].clone(), intent.clone());
            let deduplicate = round % 2 == 1;
            requests.spawn(async move {
                let body = json!({"token_intent_id": intent, "deduplicate_token": deduplicate});
                client.post("/tokens", body).await
            });
        }
        let responses = requests.join_all().await;
        let created = responses
            .iter()
            .filter(|it| it.status == StatusCode::CREATED)
            .count();
        let rejected = responses
            .iter()
            .filter(|it| it.refused() == ["token_intent_id"])
            .count();
        assert_eq!((created, rejected), (1, 15), "round {round}");
    }
    // With deduplication, later rounds return the token of an earlier round.
    assert_eq!(rows(&vault, "token_intent").await, 0);
}

/// The intent exists when it is read, and has expired when the token is written.
#[tokio::test]
async fn intents_that_expire_during_conversion_are_rejected() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.token_intent_retention = Duration::from_secs(2);
    })
    .await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let blocker = vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let created = client.post("/token-intents", card()).await;
    let unlock = async {
        until_expired(&database, &created).await;
        blocker.batch_execute("commit").await.unwrap();
    };
    let convert = json!({"token_intent_id": created.id()});
    let (converted, ()) = tokio::join!(client.post("/tokens", convert), unlock);

    assert_eq!(converted.refused(), ["token_intent_id"]);
    assert_eq!(rows(&vault, "token").await, 0);
}

/// Covers 18.13.
#[tokio::test]
async fn conversion_requires_permission_in_the_destination_container() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let public = vault
        .holder(
            &tenant,
            ApplicationKind::Public,
            grants(&[Permission::TokenIntentCreate]),
        )
        .await;
    let public = vault.client_with(Some(&public.key));
    let intent = public.post("/token-intents", card()).await;
    assert_eq!(intent.status, StatusCode::CREATED);
    let create = rule(1, "/checkout/", Transform::Mask, &[Permission::TokenCreate]);
    let update = rule(2, "/pci/", Transform::Mask, &[Permission::TokenUpdate]);
    let elsewhere = Grants {
        rules: vec![create, update],
        ..grants(&[])
    };
    let client = vault.client(&tenant, elsewhere).await;

    let default = client
        .post("/tokens", json!({"token_intent_id": intent.id()}))
        .await;
    let in_checkout = json!({"token_intent_id": intent.id(), "containers": ["/checkout/eu/"]});
    let in_checkout = client.post("/tokens", in_checkout).await;

    assert_eq!(
        default.status,
        StatusCode::FORBIDDEN,
        "the default container is /pci/high/"
    );
    assert_eq!(in_checkout.status, StatusCode::CREATED);
}
