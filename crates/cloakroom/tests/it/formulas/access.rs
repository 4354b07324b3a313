//! Permissions for the catalog, and reads from a standby.

use cloakroom::access::ApplicationKind::{self, Private};
use cloakroom::access::Permission;
use cloakroom::config::Secret;
use cloakroom_testkit::{TestDatabase, TestResponse, TestServer, TestVault, grants};
use http::{Method, StatusCode};
use serde_json::json;

use super::{PATHS, reader};

/// Covers 25.8.
#[tokio::test]
async fn the_catalog_requires_its_permission_and_is_read_only() {
    use ApplicationKind::{Management, Private, Public};

    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let needed = Permission::ConnectionFormulas;
    let cases = [
        (None, StatusCode::UNAUTHORIZED),
        (Some((Private, needed)), StatusCode::OK),
        (Some((Management, needed)), StatusCode::OK),
        (
            Some((Public, Permission::TokenCreate)),
            StatusCode::FORBIDDEN,
        ),
        (
            Some((Private, Permission::TokenRead)),
            StatusCode::FORBIDDEN,
        ),
        (
            Some((Management, Permission::TenantRead)),
            StatusCode::FORBIDDEN,
        ),
    ];
    for (held, expected) in cases {
        let mut client = vault.client_with(None);
        if let Some((kind, permission)) = held {
            let holder = vault.holder(&tenant, kind, grants(&[permission])).await;
            client = client.with_key(&holder.key);
        }
        for path in PATHS {
            let one = format!("{path}/stripe-card");
            // The permission is checked before parameters and `If-None-Match`.
            let wrong = format!("{path}?currency=1");
            let responses = [
                client.get(path).await,
                client.post(path, json!({})).await,
                client.get(&one).await,
            ];
            let statuses = responses.map(|response| response.status);
            assert_eq!(statuses, [expected; 3], "{held:?} {path}");
            if expected != StatusCode::OK {
                let request = client
                    .request(Method::GET, &wrong)
                    .header("if-none-match", "*");
                assert_eq!(
                    client.send(request).await.status,
                    expected,
                    "{held:?} {wrong}"
                );
            }
        }
    }
    let client = reader(&vault).await;
    for path in PATHS {
        let one = format!("{path}/stripe-card");
        for (path, allowed) in [(path, "GET,HEAD,POST"), (&one, "GET,HEAD")] {
            for method in [Method::PUT, Method::PATCH, Method::DELETE] {
                let request = client.request(method.clone(), path).body("{}");
                let response: TestResponse = client.send(request).await;
                assert_eq!(
                    response.status,
                    StatusCode::METHOD_NOT_ALLOWED,
                    "{method} {path}"
                );
                assert_eq!(response.header("allow"), allowed, "{method} {path}");
            }
        }
        let posted = client.post(&one, json!({})).await;
        assert_eq!(posted.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

/// Requests for formulas are authenticated by a standby while the primary is unavailable; all other requests need the
/// primary. Keys that the standby does not have are rejected, and its results are not cached.
#[tokio::test]
async fn formulas_are_served_while_the_primary_is_unavailable() {
    let (primary, standby) = (TestServer::start().await, TestServer::start().await);
    let copy = TestDatabase::empty_on(&standby.postgres.url()).await;
    let database = TestDatabase::on(&primary.postgres.url()).await;
    let alone = TestVault::start_with(database, |_| {}).await;
    let vault = alone
        .node_with(|config| config.database.replica_url = Some(Secret::new(copy.url.clone())))
        .await;
    let tenant = vault.tenant().await;
    let reading = || grants(&[Permission::ConnectionFormulas, Permission::TokenRead]);
    let holder = vault.holder(&tenant, Private, reading()).await;
    copy.restore(&vault.database.dump(&[]));
    let late = vault.holder(&tenant, Private, reading()).await;

    drop(primary);
    let status_of = async |vault: &TestVault, key: &str, path: &str| {
        let response = vault.client_with(Some(key)).get(path).await;
        response.status.as_u16()
    };
    let catalog = status_of(&vault, &holder.key, PATHS[0]).await;
    let token = status_of(
        &vault,
        &holder.key,
        "/tokens/6f2f2a5c-6e8b-4d3e-9d0a-000000000001",
    )
    .await;
    let late_key = status_of(&vault, &late.key, PATHS[0]).await;
    let unknown_key = status_of(&vault, "key_test_us_pvt_unknown", PATHS[0]).await;
    let without_standby = status_of(&alone, &holder.key, PATHS[0]).await;
    let sql = "delete from application_key where key_id = $1";
    let deleted = copy.connect().await.execute(sql, &[&holder.key_id]).await;
    let deleted_key = status_of(&vault, &holder.key, PATHS[0]).await;

    assert_eq!(deleted.unwrap(), 1);
    assert_eq!((catalog, token), (200, 503));
    assert_eq!((late_key, unknown_key, deleted_key), (401, 401, 401));
    assert_eq!(without_standby, 503);
}
