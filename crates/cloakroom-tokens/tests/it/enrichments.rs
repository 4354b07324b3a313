//! Enrichments: bank account verification and card details by BIN.

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

fn bank(account: &str) -> Value {
    json!({"type": "bank", "data": {"routing_number": "021000021", "account_number": account}})
}

fn account(number: &str) -> Value {
    json!({"type": "us_bank_account_number", "data": number})
}

/// Covers 20.1.
#[tokio::test]
async fn bank_accounts_are_verified_by_token() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, everything(Transform::Mask)).await;
    let user = vault.client(&tenant, grants(&[Permission::TokenUse])).await;
    let cases = [
        (bank("00001"), json!({}), "enabled"),
        (bank("00002"), json!({}), "inconclusive"),
        (
            bank("12345678"),
            json!({"country_code": "US"}),
            "inconclusive",
        ),
        (
            account("00001"),
            json!({"routing_number": "021000021"}),
            "enabled",
        ),
        (
            account("00000"),
            json!({"routing_number": "021000020"}),
            "disabled",
        ),
    ];
    for (token, mut body, status) in cases {
        body["token_id"] = json!(creator.post("/tokens", token.clone()).await.id());
        let response = user.post("/enrichments/bank-account-verify", body).await;
        assert_eq!(
            response.status,
            StatusCode::OK,
            "{token}: {}",
            response.body
        );
        assert_eq!(response.body, json!({"status": status}), "{token}");
    }
}

/// Covers 20.2.
#[tokio::test]
async fn invalid_verifications_are_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, everything(Transform::Mask)).await;
    let user = vault.client(&tenant, grants(&[Permission::TokenUse])).await;
    let create = async |token| creator.post("/tokens", token).await.id();
    let (bank, number) = (create(bank("00001")).await, create(account("00001")).await);
    let other = create(json!({"type": "token", "data": "x"})).await;
    let cases = [
        (json!({}), "token_id"),
        (json!({"token_id": cloakroom::ids::new_uuid()}), "token_id"),
        (json!({"token_id": other}), "token_id"),
        (json!({"token_id": number}), "routing_number"),
        (
            json!({"token_id": number, "routing_number": "12"}),
            "routing_number",
        ),
        (
            json!({"token_id": bank, "routing_number": "021000021"}),
            "routing_number",
        ),
        (
            json!({"token_id": bank, "country_code": "DE"}),
            "country_code",
        ),
    ];
    for (body, attribute) in cases {
        let response = user
            .post("/enrichments/bank-account-verify", body.clone())
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(response.refused(), [attribute], "{body}");
    }
}

/// Covers 20.2.
#[tokio::test]
async fn verification_requires_token_use_in_the_container_and_is_recorded() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, everything(Transform::Mask)).await;
    let user = vault.client(&tenant, grants(&[Permission::TokenUse])).await;
    let bank = creator.post("/tokens", bank("00001")).await.id();
    let logs = grants(&[Permission::LogRead]);
    let kind = ApplicationKind::Management;
    let logs = vault.holder(&tenant, kind, logs).await;
    let logs = vault.client_with(Some(&logs.key));
    let entries = async || logs.get(&format!("/logs?entity_id={bank}")).await;
    let before = entries().await.items().len();
    let elsewhere = Grants {
        rules: vec![rule(1, "/pci/", Transform::Reveal, &[Permission::TokenUse])],
        ..grants(&[])
    };
    let elsewhere = vault.client(&tenant, elsewhere).await;
    let (path, body) = (
        "/enrichments/bank-account-verify",
        json!({"token_id": bank}),
    );
    let response = elsewhere.post(path, body.clone()).await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
    assert_eq!(
        entries().await.items().len(),
        before,
        "a rejected request is not logged"
    );
    user.post(path, body).await;
    assert_eq!(entries().await.items().len(), before + 1);
    assert_eq!(entries().await.items()[0]["message"], "Token used");
}

/// Covers 20.3.
#[tokio::test]
async fn card_details_by_bin_use_display_names() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;
    let public = grants(&[Permission::TokenCreate]);
    let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
    let public = vault.client_with(Some(&public.key));

    let visa = client.get("/enrichments/card-details?bin=424242").await;
    assert_eq!(visa.body["brand"], "Visa");
    assert_eq!(
        public
            .get("/enrichments/card-details?bin=424242")
            .await
            .bytes,
        visa.bytes
    );
    let amex = client.get("/enrichments/card-details?bin=378282").await;
    assert_eq!(amex.body["brand"], "American Express");
    let unknown = client.get("/enrichments/card-details?bin=99999999").await;
    assert_eq!((unknown.status, unknown.body), (StatusCode::OK, json!({})));
    for bin in [
        "",
        "bin=",
        "bin=42424",
        "bin=424242424",
        "bin=42424x",
        "bin=424242&bin=424242",
    ] {
        let response = client
            .get(&format!("/enrichments/card-details?{bin}"))
            .await;
        assert_eq!(response.refused(), ["bin"], "{bin}");
    }
    let management = grants(&[Permission::LogRead]);
    let management = vault
        .holder(&tenant, ApplicationKind::Management, management)
        .await;
    let management = vault.client_with(Some(&management.key));
    let response = management.get("/enrichments/card-details?bin=424242").await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
}
