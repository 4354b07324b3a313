//! Detokenizing intents.

use cloakroom::access::{Grants, Permission, Transform};
use cloakroom_testkit::{TestVault, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{card, client};

fn detokenize_intent(id: &str, filters: &str) -> Value {
    json!(format!("{{{{ token_intent: {id}{filters} }}}}"))
}

/// Covers 12.9.
#[tokio::test]
async fn intents_are_detokenized_for_callers_with_reveal() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = client(&vault, &tenant).await;
    let intent = client.post("/token-intents", card()).await;
    let id = intent.id();

    let whole = client.post("/detokenize", detokenize_intent(&id, "")).await;
    let number = detokenize_intent(&id, " | json: '$.data.number'");
    let number = client.post("/detokenize", json!({"number": number})).await;
    let token = client
        .post("/tokens", json!({"type": "token", "data": "x"}))
        .await;
    let both = format!(
        "{{{{ {} }}}} {{{{ token_intent: {id} | json: '$.card.last4' }}}}",
        token.id()
    );
    let both = client.post("/detokenize", json!(both)).await;

    assert_eq!(whole.status, StatusCode::OK, "{}", whole.body);
    assert_eq!(whole.body["data"], card()["data"]);
    for name in [
        "id",
        "type",
        "card",
        "fingerprint",
        "created_by",
        "expires_at",
    ] {
        assert_eq!(whole.body[name], intent.body[name], "{name}");
    }
    assert_eq!(number.body, json!({"number": "4242424242424242"}));
    assert_eq!(both.body, "x 4242");
    let database = vault.database.connect().await;
    let sql = "select count(*) from log where entity_id = $1 and operation = 2 and outcome = 4";
    let logged: i64 = database.query_one(sql, &[&id]).await.unwrap().get(0);
    assert_eq!(
        logged, 3,
        "reads of revealed data are logged before the response"
    );
    // The intent can still be converted.
    let converted = client.post("/tokens", json!({"token_intent_id": id})).await;
    assert_eq!(converted.status, StatusCode::CREATED);
    let converted_intent = client.post("/detokenize", detokenize_intent(&id, "")).await;
    assert_eq!(converted_intent.status, StatusCode::BAD_REQUEST);
    let detail = format!("Failed to detokenize some tokens: {id}");
    assert_eq!(converted_intent.body["detail"], detail);
}

/// Covers 12.9.
#[tokio::test]
async fn detokenizing_intents_requires_read_and_reveal() {
    use Permission::{TokenIntentRead, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let owner = client(&vault, &tenant).await;
    let id = owner.post("/token-intents", card()).await.id();
    let granted = |permissions: &[Permission], container, transform| Grants {
        permissions: permissions.iter().copied().collect(),
        rules: vec![rule(1, container, transform, &[TokenRead])],
    };
    let reads = [TokenIntentRead];
    let cases = [
        (
            "plain permissions mask",
            grants(&[TokenRead, TokenIntentRead]),
        ),
        ("masked", granted(&reads, "/", Transform::Mask)),
        ("redacted", granted(&reads, "/", Transform::Redact)),
        ("elsewhere", granted(&reads, "/general/", Transform::Reveal)),
        ("tokens only", granted(&[], "/", Transform::Reveal)),
    ];
    for (name, granted) in cases {
        let caller = vault.client(&tenant, granted).await;
        let response = caller.post("/detokenize", detokenize_intent(&id, "")).await;
        assert_eq!(
            response.status,
            StatusCode::FORBIDDEN,
            "{name}: {}",
            response.body
        );
    }
    let enough = granted(&reads, "/pci/", Transform::Reveal);
    let enough = vault.client(&tenant, enough).await;
    let response = enough.post("/detokenize", detokenize_intent(&id, "")).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let other = vault.tenant().await;
    let other = client(&vault, &other).await;
    let response = other.post("/detokenize", detokenize_intent(&id, "")).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
}
