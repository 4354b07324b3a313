//! Deprecated features that still work.

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::applications;
use cloakroom::config::Deprecation as Mode;
use cloakroom::deprecations::DeprecatedFeature;
use cloakroom_crypto::Sensitive;
use cloakroom_testkit::{everything, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, assert_headers};

/// Covers 26.1, 26.2.
#[tokio::test]
async fn list_tokens_v1_is_served_or_gone() {
    let fixture = Fixture::start().await;
    let served = fixture.client.get("/tokens").await;
    assert_eq!(served.status, StatusCode::OK);
    fixture
        .assert_reported(&served, DeprecatedFeature::ListTokensV1)
        .await;

    let fixture = Fixture::start_with(Mode::Gone).await;
    let gone = fixture.client.get("/tokens").await;
    assert_eq!(gone.status, StatusCode::GONE);
    let detail = "This is gone (List Tokens v1): use GET /v2/tokens.";
    assert_eq!(gone.body["detail"], detail);
    fixture
        .assert_reported(&gone, DeprecatedFeature::ListTokensV1)
        .await;
}

/// Covers 26.1, 26.2.
#[tokio::test]
async fn search_tokens_v1_is_served_or_gone() {
    let fixture = Fixture::start().await;
    let query = json!({"query": "metadata.a:1 AND metadata.b:2"});
    let served = fixture.client.post("/tokens/search", query.clone()).await;
    assert_eq!(served.status, StatusCode::OK);
    let row = DeprecatedFeature::SearchTokensV1;
    fixture.assert_reported(&served, row).await;

    let fixture = Fixture::start_with(Mode::Gone).await;
    let gone = fixture.client.post("/tokens/search", query).await;
    assert_eq!(gone.status, StatusCode::GONE);
    let detail = "This is gone (Search Tokens v1): use POST /v2/tokens/search.";
    assert_eq!(gone.body["detail"], detail);
    fixture.assert_reported(&gone, row).await;
}

/// Covers 26.4.
#[tokio::test]
async fn legacy_keys_work_and_are_reported_as_deprecated() {
    let fixture = Fixture::start().await;
    let (vault, tenant) = (&fixture.vault, &fixture.tenant);
    let holder = vault
        .holder(
            tenant,
            ApplicationKind::Private,
            everything(Transform::Mask),
        )
        .await;
    let text = "key_N88mVGsp3sCXkykyN2EFED";
    let key = Sensitive::new(text.to_owned());
    let application = holder.application.to_string();
    let imported = applications::import_key(&vault.vault, tenant, &application, &key).await;
    imported.unwrap();

    let older = vault.client_with(Some(text)).get("/v2/tokens").await;
    let newer = vault.client_with(Some(&holder.key)).get("/v2/tokens").await;

    assert_eq!([older.status, newer.status], [StatusCode::OK; 2]);
    assert_eq!(newer.header("deprecation"), "");
    let row = DeprecatedFeature::LegacyRateLimits;
    fixture.assert_reported(&older, row).await;
}

/// Covers 26.9.
#[tokio::test]
async fn privacy_selects_a_container_and_is_not_returned() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let create = async |more: Value| {
        let mut body = json!({"type": "token", "data": "d"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let response = client.post("/tokens", body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
        assert!(response.body.get("privacy").is_none());
        response
    };

    let both = json!({"classification": "pci", "impact_level": "moderate",
        "restriction_policy": "redact"});
    let named = create(json!({"privacy": both})).await;
    let partial = create(json!({"privacy": {"impact_level": "low"}})).await;
    let overridden = create(json!({"privacy": both, "containers": ["/mine/"]})).await;
    let document = json!({"a": {"type": "token", "data": "d", "privacy": both}});
    let tokenized = client.post("/tokenize", document).await;
    let plain = create(json!({})).await;

    assert_eq!(named.body["containers"], json!(["/pci/moderate/"]));
    assert_eq!(partial.body["containers"], json!(["/general/low/"]));
    assert_eq!(overridden.body["containers"], json!(["/mine/"]));
    assert_eq!(tokenized.body["a"]["containers"], json!(["/pci/moderate/"]));
    let row = DeprecatedFeature::TokenPrivacy;
    for response in [&named, &partial, &overridden, &tokenized] {
        assert_headers(&fixture.vault, response, None);
    }
    assert_eq!(plain.header("deprecation"), "");
    let expected = BTreeMap::from([(row.row().name.to_owned(), 4)]);
    assert_eq!(fixture.usage().await, expected);
}

/// Covers 26.12.
#[tokio::test]
async fn the_pan_of_a_threeds_session_is_a_token_id() {
    let fixture = Fixture::start().await;
    let granted = grants(&[Permission::TokenCreate, Permission::ThreedsSessionCreate]);
    let client = fixture.vault.client(&fixture.tenant, granted).await;
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let token = client.post("/tokens", card).await.id();
    let session = |name: &str| json!({"type": "merchant", name: token});

    let older = client.post("/3ds/sessions", session("pan")).await;
    let newer = client.post("/3ds/sessions", session("token_id")).await;

    // No card network is configured, so the sessions may fail; both names must yield the same result.
    assert_eq!(older.status, newer.status);
    assert_eq!(older.body["token_id"], newer.body["token_id"]);
    assert_eq!(older.body["pan_token_id"], newer.body["pan_token_id"]);
    assert_eq!(newer.header("deprecation"), "");
    fixture
        .assert_reported(&older, DeprecatedFeature::ThreedsPan)
        .await;
}
