//! Keys and grants: who gets in, who no longer does, and who never should.

use std::time::{Duration, Instant};

use cloakroom::access::{self, ApplicationKind, Permission, TenantKind, TenantSettings};
use cloakroom::applications::{self, Error, Filter};
use cloakroom::config::Environment;
use cloakroom::tenants::{self, NewTenant};
use cloakroom_crypto::Sensitive;
use http::StatusCode;
use serde_json::json;

use crate::support::{Holder, TestDatabase, TestVault, grants};

async fn creator(vault: &TestVault) -> Holder {
    let tenant = vault.tenant().await;
    vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            grants(&[Permission::TokenCreate]),
        )
        .await
}

async fn create_status(vault: &TestVault, key: &str) -> StatusCode {
    let new = json!({"type": "token", "data": 1});
    vault
        .client_with(Some(key))
        .post("/tokens", new)
        .await
        .status
}

#[tokio::test]
async fn rows_that_were_changed_by_sql_grant_nothing() {
    let attacks = [
        "update application set grants = replace(grants, 'token:create', 'token:read')",
        "update application set grants = '{\"permissions\":[\"token:read\"],\"rules\":[]}'",
        "update application set kind = 2",
        "update application set name = 'another'",
        "update application_key set secret_mac = decode(repeat('00', 32), 'hex')",
        "update application_key set expires_at = now() + interval '1 year'",
        "update application_key set key_id = gen_random_uuid()",
        "update tenant set kind = 2",
        "update tenant set settings = '{}'",
        "update tenant set row_mac = decode(repeat('00', 32), 'hex')",
    ];
    for attack in attacks {
        let vault = TestVault::start().await;
        let holder = creator(&vault).await;

        let changed = vault
            .database
            .connect()
            .await
            .execute(attack, &[])
            .await
            .unwrap();

        assert_eq!(changed, 1, "{attack}");
        let status = create_status(&vault, &holder.key).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{attack}");
    }
}

#[tokio::test]
async fn a_key_moved_to_a_stronger_application_by_sql_is_refused() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let private = ApplicationKind::Private;
    let weak = vault
        .holder(&tenant, private, grants(&[Permission::TokenUse]))
        .await;
    let strong = vault
        .holder(&tenant, private, grants(&[Permission::TokenCreate]))
        .await;

    let database = vault.database.connect().await;
    database
        .execute(
            "update application_key set application_id = $1 where key_id = $2",
            &[&strong.application, &weak.key_id],
        )
        .await
        .unwrap();

    assert_eq!(
        create_status(&vault, &weak.key).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        create_status(&vault, &strong.key).await,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn a_deleted_key_is_dead_within_five_seconds() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;
    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );

    let database = vault.database.connect().await;
    database
        .execute("delete from application_key", &[])
        .await
        .unwrap();
    let deleted = Instant::now();
    let mut last_asked = Duration::ZERO;
    loop {
        // What counts is when a request that still got in was sent, not how long it took.
        let asked = deleted.elapsed();
        if create_status(&vault, &holder.key).await != StatusCode::CREATED {
            break;
        }
        last_asked = asked;
        assert!(asked < Duration::from_secs(20), "the key still works");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    assert!(last_asked <= Duration::from_secs(5), "{last_asked:?}");
}

#[tokio::test]
async fn an_expired_key_is_unknown() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;

    let database = vault.database.connect().await;
    let expire = "update application_key set expires_at = now() - interval '1 second'";
    database.execute(expire, &[]).await.unwrap();

    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn keys_are_kept_only_as_digests() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;

    let database = vault.database.connect().await;
    let row = database
        .query_one("select application_key::text from application_key", &[])
        .await
        .unwrap();

    let kept: String = row.get(0);
    let random = holder.key.rsplit('_').next().unwrap();
    assert!(
        kept.contains(&random[..10]),
        "the look-up part finds the row"
    );
    for secret in [&random[10..22], &random[23..]] {
        assert!(!kept.contains(secret));
        assert!(!kept.contains(&hex::encode(secret)));
    }
}

#[tokio::test]
async fn a_test_vault_keeps_no_production_tenant() {
    let test = TestVault::start().await;
    let production = TestVault::start_with(TestDatabase::create().await, |config| {
        config.vault.environment = Environment::Production;
        config.root_key.allow_file_in_production = true;
    })
    .await;
    let new = || NewTenant {
        name: "Real".into(),
        kind: TenantKind::Production,
        settings: TenantSettings::default(),
    };

    let refused = tenants::create(&test.vault, new()).await;
    let tenant = tenants::create(&production.vault, new()).await.unwrap();

    assert!(matches!(
        refused,
        Err(tenants::Error::ProductionTenantInTest)
    ));
    let granted = grants(&[Permission::TokenCreate]);
    let holder = production
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    assert!(holder.key.starts_with("key_prod_us_pvt_"));
    assert_eq!(
        create_status(&production, &holder.key).await,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn tenants_made_at_the_same_moment_get_numbers_of_their_own() {
    let vault = TestVault::start().await;

    let mut making = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let vault = vault.vault.clone();
        making.spawn(async move {
            let new = NewTenant {
                name: "One of many".into(),
                kind: TenantKind::Test,
                settings: TenantSettings::default(),
            };
            tenants::create(&vault, new).await.unwrap().id.number
        });
    }
    let mut numbers = making.join_all().await;

    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[tokio::test]
async fn two_keys_in_one_request_are_none() {
    let vault = TestVault::start().await;
    let (one, two) = (creator(&vault).await, creator(&vault).await);

    let client = vault.client_with(Some(&one.key));
    let request = client
        .request(http::Method::POST, "/tokens")
        .header("bt-api-key", &two.key)
        .header("content-type", "application/json")
        .body(r#"{"type":"token","data":1}"#);

    assert_eq!(client.send(request).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn examining_finds_every_row_that_was_changed_by_sql() {
    let vault = TestVault::start().await;
    creator(&vault).await;
    creator(&vault).await;
    let database = vault.database.connect().await;

    let intact = access::examine(&vault.vault).await.unwrap();
    let attacks = [
        (
            "update application set grants = '{}' where tenant_id = 1",
            1,
        ),
        (
            "update application_key set expires_at = now() where tenant_id = 1",
            2,
        ),
        // Nothing below a tenant that cannot be trusted is looked at.
        ("update tenant set name = 'another' where tenant_id = 1", 1),
    ];

    assert_eq!((intact.rows, intact.altered), (6, vec![]));
    for (attack, altered) in attacks {
        assert_eq!(database.execute(attack, &[]).await.unwrap(), 1, "{attack}");
        let examined = access::examine(&vault.vault).await.unwrap();
        assert_eq!(
            examined.altered.len(),
            altered,
            "{attack}: {:?}",
            examined.altered
        );
    }
}

#[tokio::test]
async fn wrong_secrets_and_unknown_keys_cost_the_same_look_ups() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;
    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );
    let wrong = format!("{}{}", &holder.key[..holder.key.len() - 4], "0000");

    // The right key is remembered; a wrong secret must not profit from that.
    vault
        .database
        .connect()
        .await
        .execute("drop table application_key", &[])
        .await
        .unwrap();
    let remembered = create_status(&vault, &holder.key).await;
    let refused = create_status(&vault, &wrong).await;

    assert_eq!(remembered, StatusCode::CREATED);
    assert_eq!(
        refused,
        StatusCode::INTERNAL_SERVER_ERROR,
        "it was looked up"
    );
}

/// What an application of the older kind was given once.
const LEGACY: &str = "key_N88mVGsp3sCXkykyN2EFED";

/// Covers 13.28.
#[tokio::test]
async fn an_imported_key_of_the_older_format_works_and_is_known_as_such() {
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
    let text = Sensitive::new(LEGACY.to_owned());

    let unknown = create_status(&vault, LEGACY).await;
    let imported = applications::import_key(&vault.vault, &tenant, &app, &text).await;
    let imported = imported.unwrap();
    let known = create_status(&vault, LEGACY).await;
    let similar = create_status(&vault, "key_N88mVGsp3sCXkykyN2EFEE").await;
    let legacy = access::authenticate(&vault.vault, LEGACY).await.unwrap();
    let present = access::authenticate(&vault.vault, &holder.key)
        .await
        .unwrap();
    let path = format!("/applications/{app}/keys");
    let listed = vault.client_with(Some(&manager.key)).get(&path).await;

    assert_eq!(unknown, StatusCode::UNAUTHORIZED);
    assert_eq!(known, StatusCode::CREATED);
    assert_eq!(similar, StatusCode::UNAUTHORIZED);
    assert_eq!(legacy.key, imported.id);
    assert_eq!((legacy.is_legacy, present.is_legacy), (true, false));
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
async fn nothing_of_an_imported_key_is_kept_and_sql_cannot_change_its_row() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let granted = grants(&[Permission::TokenCreate]);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let app = holder.application.to_string();
    let text = Sensitive::new(LEGACY.to_owned());
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
    let kept: String = row.get(0);
    let swap = "update application_key set lookup = lookup || 'x' where key_id = $1";
    database.execute(swap, &[&id]).await.unwrap();
    let moved = create_status(&vault, LEGACY).await;
    let back = "update application_key set lookup = rtrim(lookup, 'x'),
        expires_at = now() + interval '1 day' where key_id = $1";
    database.execute(back, &[&id]).await.unwrap();
    let prolonged = create_status(&vault, LEGACY).await;
    let mend = "update application_key set expires_at = null where key_id = $1";
    database.execute(mend, &[&id]).await.unwrap();
    let genuine = create_status(&vault, LEGACY).await;
    let asker = (&tenant).into();
    applications::delete_key(&vault.vault, asker, &app, &id.to_string())
        .await
        .unwrap();
    let deleted = create_status(&vault, LEGACY).await;

    for part in [&LEGACY[4..], &LEGACY[4..14], &LEGACY[14..]] {
        assert!(!kept.contains(part) && !kept.contains(&hex::encode(part)));
    }
    let unauthorized = StatusCode::UNAUTHORIZED;
    assert_eq!([moved, prolonged, deleted], [unauthorized; 3]);
    assert_eq!(genuine, StatusCode::CREATED);
}

#[tokio::test]
async fn what_is_no_older_key_is_not_imported_and_neither_is_one_twice() {
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
    ] {
        assert!(
            matches!(import(text).await, Err(Error::Invalid(_))),
            "{text}"
        );
    }
    assert!(import(LEGACY).await.is_ok());
    assert!(matches!(import(LEGACY).await, Err(Error::Invalid(_))));
    assert!(import("key_us_pvt_11111111111111").await.is_ok());
    let fourth = import("key_us_pvt_22222222222222").await;
    assert!(matches!(fourth, Err(Error::TooManyKeys(3))));
    let all = Filter::default();
    let kept = applications::list_keys(&vault.vault, (&tenant).into(), &app, &all).await;
    assert_eq!(kept.unwrap().len(), 3);
}

#[tokio::test]
async fn older_keys_are_looked_up_whether_they_exist_or_not() {
    let vault = TestVault::start().await;
    let database = vault.database.connect().await;
    database
        .execute("drop table application_key", &[])
        .await
        .unwrap();

    let looked_up = create_status(&vault, LEGACY).await;
    let malformed = create_status(&vault, "key_test_us_pvt_11111").await;
    let too_short = create_status(&vault, "key_11111").await;

    assert_eq!(looked_up, StatusCode::INTERNAL_SERVER_ERROR);
    let unauthorized = StatusCode::UNAUTHORIZED;
    assert_eq!([malformed, too_short], [unauthorized; 2]);
}
