//! Imported keys in the legacy format.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::applications::{self, Error, Filter};
use cloakroom::authentication;
use cloakroom_crypto::Sensitive;
use cloakroom_testkit::{TestVault, grants};
use http::StatusCode;

use super::create_status;

/// An API key in the legacy format.
const LEGACY_KEY: &str = "key_N88mVGsp3sCXkykyN2EFED";

/// Covers 13.28.
#[tokio::test]
async fn an_imported_legacy_key_works_and_is_marked_as_legacy() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let granted = grants(&[Permission::TokenCreate]);
    let holder = vault
        .holder(&tenant, ApplicationKind::Public, granted)
        .await;
    let app = holder.application.to_string();
    let manager = grants(&[Permission::ApplicationRead]);
    let manager = vault
        .holder(&tenant, ApplicationKind::Management, manager)
        .await;
    let text = Sensitive::new(LEGACY_KEY.to_owned());

    let unknown = create_status(&vault, LEGACY_KEY).await;
    let imported = applications::import_key(&vault.vault, &tenant, &app, &text).await;
    let imported = imported.unwrap();
    let accepted = create_status(&vault, LEGACY_KEY).await;
    let similar = create_status(&vault, "key_N88mVGsp3sCXkykyN2EFEE").await;
    let legacy = authentication::authenticate(&vault.vault, LEGACY_KEY)
        .await
        .unwrap();
    let current = authentication::authenticate(&vault.vault, &holder.key)
        .await
        .unwrap();
    let path = format!("/applications/{app}/keys");
    let listed = vault.client_with(Some(&manager.key)).get(&path).await;

    assert_eq!(unknown, StatusCode::UNAUTHORIZED);
    assert_eq!(accepted, StatusCode::CREATED);
    assert_eq!(similar, StatusCode::UNAUTHORIZED);
    assert_eq!(legacy.key, imported.id);
    assert_eq!((legacy.is_legacy, current.is_legacy), (true, false));
    let versions: Vec<&serde_json::Value> = listed
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["version"])
        .collect();
    assert_eq!(versions, ["2", "1"]);
    assert!(!String::from_utf8_lossy(&listed.bytes).contains("N88mVG"));
}

#[tokio::test]
async fn an_imported_key_is_stored_as_a_digest_and_protected_against_sql() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let granted = grants(&[Permission::TokenCreate]);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let app = holder.application.to_string();
    let text = Sensitive::new(LEGACY_KEY.to_owned());
    let imported = applications::import_key(&vault.vault, &tenant, &app, &text).await;
    let id = imported.unwrap().id;
    let database = vault.database.connect().await;

    let row = database
        .query_one(
            "select key::text from application_key key where key_id = $1",
            &[&id],
        )
        .await
        .unwrap();
    let stored: String = row.get(0);
    let swap = "update application_key set lookup = lookup || 'x' where key_id = $1";
    database.execute(swap, &[&id]).await.unwrap();
    let moved = create_status(&vault, LEGACY_KEY).await;
    let prolong = "update application_key set lookup = rtrim(lookup, 'x'),
        expires_at = now() + interval '1 day' where key_id = $1";
    database.execute(prolong, &[&id]).await.unwrap();
    let prolonged = create_status(&vault, LEGACY_KEY).await;
    let restore = "update application_key set expires_at = null where key_id = $1";
    database.execute(restore, &[&id]).await.unwrap();
    let restored = create_status(&vault, LEGACY_KEY).await;
    let actor = (&tenant).into();
    applications::delete_key(&vault.vault, actor, &app, &id.to_string())
        .await
        .unwrap();
    let deleted = create_status(&vault, LEGACY_KEY).await;

    for part in [&LEGACY_KEY[4..], &LEGACY_KEY[4..14], &LEGACY_KEY[14..]] {
        assert!(!stored.contains(part) && !stored.contains(&hex::encode(part)));
    }
    let unauthorized = StatusCode::UNAUTHORIZED;
    assert_eq!([moved, prolonged, deleted], [unauthorized; 3]);
    assert_eq!(restored, StatusCode::CREATED);
}

#[tokio::test]
async fn only_legacy_keys_are_imported_and_each_only_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let granted = grants(&[Permission::TokenCreate]);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let app = holder.application.to_string();
    let import = async |text: &str| {
        let text = Sensitive::new(text.to_owned());
        applications::import_key(&vault.vault, &tenant, &app, &text).await
    };

    for text in [
        "",
        "key_short",
        &"x".repeat(101),
        &holder.key,
        "key 111111111111111111111",
        "key_us_pvt_111111111111111111111",
    ] {
        assert!(
            matches!(import(text).await, Err(Error::Invalid(_))),
            "{text}"
        );
    }
    assert!(import(LEGACY_KEY).await.is_ok());
    assert!(matches!(import(LEGACY_KEY).await, Err(Error::Invalid(_))));
    assert!(import("key_us_pvt_1111111111111111111111").await.is_ok());
    let fourth = import("key_us_pvt_2222222222222222222222").await;
    assert!(matches!(fourth, Err(Error::TooManyKeys(3))));
    let all = Filter::default();
    let keys = applications::list_keys(&vault.vault, (&tenant).into(), &app, &all).await;
    assert_eq!(keys.unwrap().len(), 3);
}

#[tokio::test]
async fn legacy_keys_cost_a_lookup_whether_they_exist_or_not() {
    let vault = TestVault::start().await;
    let database = vault.database.connect().await;
    database
        .execute("drop table application_key", &[])
        .await
        .unwrap();

    let looked_up = create_status(&vault, LEGACY_KEY).await;
    let malformed = create_status(&vault, "key_test_us_pvt_11111").await;
    let too_short = create_status(&vault, "key_11111").await;

    assert_eq!(looked_up, StatusCode::INTERNAL_SERVER_ERROR);
    let unauthorized = StatusCode::UNAUTHORIZED;
    assert_eq!([malformed, too_short], [unauthorized; 2]);
}
