//! Card tokens: details by BIN, and security codes stored in a separate table.

use std::time::Duration;

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{Client, TestDatabase, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

const NUMBER: &str = "4242424242424242";

async fn create(client: &Client, data: Value) -> String {
    let created = client
        .post("/tokens", json!({"type": "card", "data": data}))
        .await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    created.id()
}

async fn code_rows(vault: &TestVault) -> i64 {
    let database = vault.database.connect().await;
    let count = database.query_one("select count(*) from security_code", &[]);
    count.await.unwrap().get(0)
}

#[tokio::test]
async fn a_security_code_is_shown_only_to_callers_with_reveal() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let new = json!({
        "type": "card",
        "data": {"number": NUMBER, "cvc": 123, "expiration_month": 12},
        "mask": {"code": "{{ data.cvc }}", "number": "{{ data.number | last4 }}"},
    });

    let created = owner.post("/tokens", new).await;
    let path = format!("/tokens/{}", created.id());
    let revealed = owner.get(&path).await;
    let masked = reader.get(&path).await;

    let expected = r#"{"number":"4242424242424242","expiration_month":12,"cvc":"123"}"#;
    assert_eq!(created.body["data"].to_string(), expected);
    assert_eq!(revealed.body["data"].to_string(), expected);
    assert_eq!(masked.body["data"], json!({"code": null, "number": "4242"}));
    assert_eq!(code_rows(&vault).await, 1);
}

/// Covers 5.18.
#[tokio::test]
async fn a_security_code_expires_after_its_retention_and_the_card_stays() {
    let database = TestDatabase::create().await;
    let vault = TestVault::start_with(database, |config| {
        config.security_codes.retention = Duration::from_secs(2);
        config.security_codes.epoch = Duration::from_secs(1);
    })
    .await;
    let client = vault.revealing_client().await;
    let id = create(&client, json!({"number": NUMBER, "cvc": "999"})).await;
    let path = format!("/tokens/{id}");

    let early = client.get(&path).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let late = client.get(&path).await;
    let expression = json!(format!("{{{{ {id} | json: '$.cvc' }}}}"));
    let detokenized = client.post("/detokenize", expression).await;
    let again = client.patch(&path, json!({"data": {"cvc": "111"}})).await;
    let renewed = client.get(&path).await;
    cloakroom::jobs::sweep_once(&vault.vault, cloakroom::ids::new_uuid())
        .await
        .unwrap();

    assert_eq!(early.body["data"]["cvc"], "999");
    assert_eq!(late.body["data"], json!({"number": NUMBER}));
    assert!(late.body.get("modified_at").is_none());
    assert_eq!(
        (detokenized.status, &detokenized.body),
        (StatusCode::OK, &Value::Null)
    );
    assert_eq!(again.body["data"]["cvc"], "111");
    assert_eq!(renewed.body["data"]["cvc"], "111");
    assert_eq!(code_rows(&vault).await, 1);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let node = cloakroom::ids::new_uuid();
    // This node may have to wait for the lease, so the table is swept directly as well.
    let _ = cloakroom::jobs::sweep_once(&vault.vault, node).await;
    cloakroom::security_codes::sweep(&vault.vault)
        .await
        .unwrap();
    assert_eq!(code_rows(&vault).await, 0);
}

#[tokio::test]
async fn updates_change_remove_and_preserve_the_security_code() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = create(&client, json!({"number": NUMBER, "cvc": "123"})).await;
    let path = format!("/tokens/{id}");

    let preserved = client.patch(&path, json!({"metadata": {"a": "b"}})).await;
    let replaced = client
        .patch(&path, json!({"data": {"number": "5555555555554444"}}))
        .await;
    let changed = client.patch(&path, json!({"data": {"cvc": 456}})).await;
    let removed = client.patch(&path, json!({"data": {"cvc": null}})).await;
    let rows = code_rows(&vault).await;
    let found = client.get(&path).await;
    let invalid = client.patch(&path, json!({"data": {"cvc": "12"}})).await;

    assert_eq!(preserved.body["data"]["cvc"], "123");
    // It belonged to the other number.
    assert_eq!(replaced.body["data"], json!({"number": "5555555555554444"}));
    assert_eq!(changed.body["data"]["cvc"], "456");
    assert_eq!(removed.body["data"], json!({"number": "5555555555554444"}));
    assert_eq!(rows, 0);
    assert_eq!(found.body["data"], json!({"number": "5555555555554444"}));
    assert_eq!(invalid.refused(), ["data.cvc"]);
}

#[tokio::test]
async fn deleting_a_card_deletes_its_security_code() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = create(&client, json!({"number": NUMBER, "cvc": "123"})).await;

    client.delete(&format!("/tokens/{id}")).await;

    assert_eq!(code_rows(&vault).await, 0);
}

#[tokio::test]
async fn stored_digests_do_not_depend_on_the_security_code() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = |cvc: &str| {
        json!({
            "type": "card",
            "data": {"number": NUMBER, "cvc": cvc},
            "search_indexes": ["{{ data | stringify }}", "{{ data.number | last4 }}"],
            "fingerprint_expression": "{{ data | json_stringify }}",
        })
    };

    let one = client.post("/tokens", new("123")).await;
    let other = client.post("/tokens", new("987")).await;

    assert_eq!(one.body["fingerprint"], other.body["fingerprint"]);
    let database = vault.database.connect().await;
    let terms = "select count(distinct terms), count(*) from token";
    let row = database.query_one(terms, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 2));
}

#[tokio::test]
async fn stored_expressions_may_not_reference_the_security_code() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let card = |attribute: &str, value: Value| {
        let mut new = json!({"type": "card", "data": {"number": NUMBER, "cvc": "123"}});
        new[attribute] = value;
        new
    };

    let index = card(
        "search_indexes",
        json!(["{{ data.number }}", "{{ data.cvc }}"]),
    );
    let index = client.post("/tokens", index).await;
    let fingerprint = card("fingerprint_expression", json!("{{ data['cvc'] }}"));
    let fingerprint = client.post("/tokens", fingerprint).await;
    let id = card("id", json!("code {{ data.cvc }} {{ data.number | last4 }}"));
    let id = client.post("/tokens", id).await;

    assert_eq!(index.refused(), ["search_indexes[1]"]);
    assert_eq!(fingerprint.refused(), ["fingerprint_expression"]);
    assert_eq!(id.body["id"], "code  4242");
}

#[tokio::test]
async fn a_security_code_is_unavailable_on_other_nodes_without_redis() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            cloakroom::access::ApplicationKind::Private,
            cloakroom::access::Grants {
                rules: vec![rule(
                    1,
                    "/",
                    Transform::Reveal,
                    &[Permission::TokenCreate, Permission::TokenRead],
                )],
                ..grants(&[])
            },
        )
        .await;
    let second = vault.second_node().await;
    let here = vault.client_with(Some(&holder.key));
    let there = second.client_with(Some(&holder.key));
    let id = create(&here, json!({"number": NUMBER, "cvc": "123"})).await;
    let path = format!("/tokens/{id}");

    assert_eq!(here.get(&path).await.body["data"]["cvc"], "123");
    assert_eq!(
        there.get(&path).await.body["data"],
        json!({"number": NUMBER})
    );
}

#[tokio::test]
async fn card_details_depend_on_the_token_type() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let details = async |kind: &str, data: Value, name: &str| {
        let created = client
            .post("/tokens", json!({"type": kind, "data": data}))
            .await;
        created.body[name].to_string()
    };

    let card = json!({"number": NUMBER, "expiration_month": 1, "expiration_year": 2030});
    let bin_details = concat!(
        r#""brand":"visa","funding":"credit","authentication":"sca_required","#,
        r#""issuer":{"country":"BM"},"#,
        r#""issuer_country":{"alpha2":"BM","numeric":"060","name":"Bermuda"}}"#
    );
    let dated = format!(
        r#"{{"bin":"42424242","last4":"4242","expiration_month":1,"expiration_year":2030,{bin_details}"#
    );
    assert_eq!(details("card", card.clone(), "card").await, dated);
    assert_eq!(details("network_token", card, "network_token").await, dated);
    assert_eq!(
        details("card_number", json!(NUMBER), "card").await,
        format!(r#"{{"bin":"42424242","last4":"4242",{bin_details}"#)
    );
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});
    assert_eq!(
        details("bank", bank, "bank").await,
        r#"{"routing_number":"021000021","account_number_last4":"0001"}"#
    );
    assert_eq!(details("token", json!(NUMBER), "card").await, "null");
}
