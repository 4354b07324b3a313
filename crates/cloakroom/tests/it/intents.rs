//! Token intents: data that waits to become a token, or to be forgotten.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::{ids, jobs};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestDatabase, TestVault, everything, grants, rule};

const INTENTS: [Permission; 3] = [
    Permission::TokenIntentCreate,
    Permission::TokenIntentRead,
    Permission::TokenIntentDelete,
];

fn card() -> Value {
    json!({
        "type": "card",
        "data": {
            "number": "4242424242424242",
            "expiration_month": 12,
            "expiration_year": 2030,
            "cvc": "123",
        },
    })
}

/// Everything with intents and tokens.
fn all() -> Grants {
    Grants {
        permissions: INTENTS.into_iter().collect(),
        ..everything(Transform::Reveal)
    }
}

async fn client(vault: &TestVault, tenant: &Tenant) -> Client {
    vault.client(tenant, all()).await
}

async fn rows(vault: &TestVault, table: &str) -> i64 {
    let database = vault.database.connect().await;
    let sql = format!("select count(*) from {table}");
    database.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Covers 18.1, 18.2.
#[tokio::test]
async fn an_intent_is_created_shown_and_deleted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;

    let created = client.post("/token-intents", card()).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let path = format!("/token-intents/{}", created.id());
    assert_eq!(
        created.header("location"),
        format!("{}{path}", vault.base_url)
    );
    let told = created.told(&[
        "id",
        "tenant_id",
        "fingerprint",
        "created_by",
        "created_at",
        "expires_at",
        "card",
    ]);
    insta::assert_snapshot!(told, @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "type": "card",
      "card": "[card]",
      "fingerprint": "[fingerprint]",
      "created_by": "[created_by]",
      "created_at": "[created_at]",
      "expires_at": "[expires_at]"
    }
    "#);
    assert_eq!(created.body["card"]["last4"], "4242");
    let time =
        |name: &str| -> jiff::Timestamp { created.body[name].as_str().unwrap().parse().unwrap() };
    let life = time("created_at").duration_until(time("expires_at"));
    assert_eq!(life.as_secs(), 24 * 60 * 60);
    let id: uuid::Uuid = created.id().parse().unwrap();
    assert_eq!(id.get_version_num(), 4);
    assert_eq!(rows(&vault, "token_intent").await, 1, "one row");
    assert_eq!(rows(&vault, "security_code").await, 0, "and no other");

    let found = client.get(&path).await;
    assert_eq!((found.status, &found.body), (StatusCode::OK, &created.body));

    let deleted = client.delete(&path).await;
    assert_eq!(
        (deleted.status, deleted.bytes.len()),
        (StatusCode::NO_CONTENT, 0)
    );
    for answer in [client.get(&path).await, client.delete(&path).await] {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(rows(&vault, "token_intent").await, 0);
}

/// Covers 18.3.
#[tokio::test]
async fn an_intent_has_the_fingerprint_and_the_details_that_its_token_has() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let cases = [
        card(),
        json!({"type": "card_number", "data": "4242424242424242"}),
        json!({"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}}),
        json!({"type": "token", "data": {"a": 1}}),
        json!({"type": "social_security_number", "data": "111223333"}),
        json!({"type": "employer_id_number", "data": "123456789"}),
    ];
    for case in cases {
        let intent = client.post("/token-intents", case.clone()).await;
        let token = client.post("/tokens", case.clone()).await;
        assert_eq!(
            intent.status,
            StatusCode::CREATED,
            "{case}: {}",
            intent.body
        );
        for name in ["fingerprint", "card", "bank", "type", "tenant_id"] {
            assert_eq!(intent.body[name], token.body[name], "{name} of {case}");
        }
        assert!(intent.body["fingerprint"].is_string());
        assert!(intent.body.get("data").is_none());
    }
}

/// Covers 18.4.
#[tokio::test]
async fn broken_intents_are_refused_by_name() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let cases = [
        (json!({}), vec!["data", "type"]),
        (json!({"type": "card"}), vec!["data"]),
        (
            json!({"type": "network_token", "data": {"number": "4242424242424242"}}),
            vec!["type"],
        ),
        (json!({"type": "cards", "data": 1}), vec!["type"]),
        (
            json!({"type": "card", "data": {"number": "4242424242424241"}}),
            vec!["data.number"],
        ),
    ];
    for (body, refused) in cases {
        let answer = client.post("/token-intents", body.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer.refused(), refused, "{body}");
    }
}

/// Covers 18.5, 18.6.
#[tokio::test]
async fn an_intent_becomes_a_token_with_every_attribute_and_is_gone() {
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
        "the security code stays behind"
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
async fn what_cannot_be_converted_is_named() {
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
    for (body, refused) in cases {
        let answer = client.post("/tokens", body.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{body}: {}",
            answer.body
        );
        assert_eq!(
            answer
                .refused()
                .iter()
                .map(|it| it.split('[').next().unwrap())
                .collect::<Vec<_>>(),
            refused,
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
    let refused = client.post("/tokenize", twice).await;
    assert_eq!(refused.refused(), ["[1].token_intent_id"]);
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
async fn with_deduplication_an_intent_is_merged_into_the_token_that_is_there() {
    let vault = TestVault::start().await;
    // Even where the tenant only wants to read what is there.
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = client(&vault, &tenant).await;
    let mut old = card();
    old["metadata"] = json!({"kept": "yes", "order": "1"});
    old["data"]["expiration_year"] = json!(2029);
    // The type's own fingerprint covers the expiry, too.
    old["fingerprint_expression"] = json!("{{ data.number }}");
    let token = client.post("/tokens", old).await;
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

/// Whoever is first gets it, on whichever node.
///
/// Covers 18.10.
#[tokio::test]
async fn an_intent_is_converted_once_however_many_ask() {
    let vault = TestVault::start_patient().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let holder = vault.holder(&tenant, ApplicationKind::Private, all()).await;
    let nodes = [
        vault.client_with(Some(&holder.key)),
        other.client_with(Some(&holder.key)),
    ];
    for round in 0..5 {
        let intent = nodes[0].post("/token-intents", card()).await.id();
        let mut asked = tokio::task::JoinSet::new();
        for index in 0..16 {
            let (client, intent) = (nodes[index % 2].clone(), intent.clone());
            let deduplicate = round % 2 == 1;
            asked.spawn(async move {
                let body = json!({"token_intent_id": intent, "deduplicate_token": deduplicate});
                client.post("/tokens", body).await
            });
        }
        let answers = asked.join_all().await;
        let created = answers
            .iter()
            .filter(|it| it.status == StatusCode::CREATED)
            .count();
        let refused = answers
            .iter()
            .filter(|it| it.refused() == ["token_intent_id"])
            .count();
        assert_eq!((created, refused), (1, 15), "round {round}");
    }
    // Rounds with deduplication meet the first token, or the one of such a round before.
    assert_eq!(rows(&vault, "token_intent").await, 0);
}

/// Waits until the database says that it is over.
async fn until_expired(database: &tokio_postgres::Client, created: &Answer) {
    let expires_at = created.body["expires_at"].as_str().unwrap();
    let expires_at: jiff::Timestamp = expires_at.parse().unwrap();
    let is_past = async || -> bool {
        let sql = "select now() >= $1";
        let row = database.query_one(sql, &[&expires_at]).await;
        row.unwrap().get(0)
    };
    while !is_past().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// It was there when it was read, and is not when the token is written.
#[tokio::test]
async fn an_intent_that_ends_on_its_way_becomes_no_token() {
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

/// I05 for intents.
///
/// Covers 18.11.
#[tokio::test]
async fn an_intent_ends_at_its_instant_and_leaves_nothing() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.token_intent_retention = Duration::from_secs(2);
    })
    .await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let created = client.post("/token-intents", card()).await;
    let path = format!("/token-intents/{}", created.id());
    assert_eq!(client.get(&path).await.status, StatusCode::OK);
    let database = vault.database.connect().await;
    until_expired(&database, &created).await;

    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
    let converted = client
        .post("/tokens", json!({"token_intent_id": created.id()}))
        .await;
    assert_eq!(converted.refused(), ["token_intent_id"]);
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();
    assert_eq!(rows(&vault, "token_intent").await, 0);
    let logged: i64 = database
        .query_one(
            "select count(*) from log where entity_kind = 4 and operation = 9",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(logged, 1, "the end of an intent is recorded");
}

/// The code of an intent ends at its own time, under a key that is in no table.
#[tokio::test]
async fn the_security_code_of_an_intent_ends_before_it() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.security_codes.retention = Duration::from_secs(1);
    })
    .await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    client.post("/token-intents", card()).await;
    let database = vault.database.connect().await;
    let codes = async || -> i64 {
        let sql = "select count(*) from token_intent where code_sealed is not null";
        database.query_one(sql, &[]).await.unwrap().get(0)
    };
    assert_eq!(codes().await, 1);
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    assert_eq!((codes().await, rows(&vault, "token_intent").await), (0, 1));
}

/// I10 for intents.
///
/// Covers 18.12.
#[tokio::test]
async fn an_intent_changed_by_sql_is_neither_shown_nor_converted() {
    let changes = [
        "kind = 1",
        "expires_at = expires_at + interval '1 hour'",
        "fingerprint = sha256('x')",
        "sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)",
        "intent_id = '11111111-1111-4111-8111-111111111111'",
    ];
    for change in changes {
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        let client = client(&vault, &tenant).await;
        let mut id = client.post("/token-intents", card()).await.id();
        let database = vault.database.connect().await;
        let sql = format!("update token_intent set {change}");
        database.batch_execute(&sql).await.unwrap();
        if change.starts_with("intent_id") {
            id = "11111111-1111-4111-8111-111111111111".to_owned();
        }

        let found = client.get(&format!("/token-intents/{id}")).await;
        let converted = client.post("/tokens", json!({"token_intent_id": id})).await;

        for answer in [found, converted] {
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{change}");
            assert_eq!(answer.body["code"], "integrity_error", "{change}");
        }
        assert_eq!(rows(&vault, "token").await, 0, "{change}");
    }
}

/// Covers 18.13.
#[tokio::test]
async fn public_keys_create_intents_and_conversion_asks_for_the_destination() {
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
    let elsewhere = Grants {
        rules: vec![rule(
            1,
            "/checkout/",
            Transform::Mask,
            &[Permission::TokenCreate],
        )],
        ..grants(&[])
    };
    let client = vault.client(&tenant, elsewhere).await;

    let own = client
        .post("/tokens", json!({"token_intent_id": intent.id()}))
        .await;
    let there = json!({"token_intent_id": intent.id(), "containers": ["/checkout/eu/"]});
    let there = client.post("/tokens", there).await;

    assert_eq!(own.status, StatusCode::FORBIDDEN, "cards lie in /pci/high/");
    assert_eq!(there.status, StatusCode::CREATED);
}

/// Covers 18.14.
#[tokio::test]
async fn what_happens_to_an_intent_is_told() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let logs = vault
        .holder(
            &tenant,
            ApplicationKind::Management,
            grants(&[Permission::LogRead]),
        )
        .await;
    let logs = vault.client_with(Some(&logs.key));
    let told = async |id: &str| -> Vec<String> {
        let answer = logs
            .get(&format!("/logs?entity_type=token_intent&entity_id={id}"))
            .await;
        let message = |it: &Value| it["message"].as_str().unwrap().to_owned();
        answer.items().iter().map(message).collect()
    };

    let deleted = client.post("/token-intents", card()).await.id();
    client.get(&format!("/token-intents/{deleted}")).await;
    client.delete(&format!("/token-intents/{deleted}")).await;
    let converted = client.post("/token-intents", card()).await.id();
    client
        .post("/tokens", json!({"token_intent_id": converted}))
        .await;

    assert_eq!(
        told(&deleted).await,
        [
            "Token intent deleted",
            "Token intent retrieved",
            "Token intent created"
        ]
    );
    assert_eq!(
        told(&converted).await,
        ["Token intent converted", "Token intent created"]
    );
}
