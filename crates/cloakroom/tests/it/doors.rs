//! Every route, tried by everyone who must not get in.

use std::collections::BTreeSet;

use cloakroom::access::{ApiKey, ApplicationKind, Permission, TenantKind};
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Client, TestVault, grants};

/// Who may pass a door.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Needs {
    Nothing,
    Permission(Permission),
}

/// Every route of the service. One that is missing here, or here alone, fails the first test.
pub(crate) const DOORS: &[(Method, &str, Needs)] = &[
    (Method::GET, "/ping", Needs::Nothing),
    (Method::GET, "/openapi.json", Needs::Nothing),
    (
        Method::POST,
        "/tokens",
        Needs::Permission(Permission::TokenCreate),
    ),
    (
        Method::GET,
        "/tokens/{id}",
        Needs::Permission(Permission::TokenRead),
    ),
    (
        Method::PATCH,
        "/tokens/{id}",
        Needs::Permission(Permission::TokenUpdate),
    ),
    (
        Method::DELETE,
        "/tokens/{id}",
        Needs::Permission(Permission::TokenDelete),
    ),
    (
        Method::GET,
        "/v2/tokens",
        Needs::Permission(Permission::TokenRead),
    ),
    (
        Method::POST,
        "/v2/tokens/search",
        Needs::Permission(Permission::TokenSearch),
    ),
    (
        Method::GET,
        "/tokens",
        Needs::Permission(Permission::TokenRead),
    ),
    (
        Method::POST,
        "/tokens/search",
        Needs::Permission(Permission::TokenSearch),
    ),
    (
        Method::POST,
        "/tokenize",
        Needs::Permission(Permission::TokenCreate),
    ),
    (
        Method::POST,
        "/detokenize",
        Needs::Permission(Permission::TokenRead),
    ),
    (
        Method::POST,
        "/token-intents",
        Needs::Permission(Permission::TokenIntentCreate),
    ),
    (
        Method::GET,
        "/token-intents/{id}",
        Needs::Permission(Permission::TokenIntentRead),
    ),
    (
        Method::DELETE,
        "/token-intents/{id}",
        Needs::Permission(Permission::TokenIntentDelete),
    ),
    (Method::GET, "/logs", Needs::Permission(Permission::LogRead)),
    (
        Method::GET,
        "/logs/entity-types",
        Needs::Permission(Permission::LogRead),
    ),
];

/// A stranger, and the answer that awaits them at every door that needs a permission.
struct Stranger {
    name: &'static str,
    client: Client,
    expected: StatusCode,
}

#[test]
fn every_route_is_listed() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), path.clone()));
        }
    }

    let listed: BTreeSet<(String, String)> = DOORS
        .iter()
        .map(|(method, path, _)| (method.to_string(), (*path).to_owned()))
        .collect();

    assert_eq!(listed, routes);
}

#[tokio::test]
async fn nobody_passes_a_door_without_the_right_key() {
    let vault = TestVault::start().await;
    let mut tried = 0;

    for (method, path, needs) in DOORS {
        let Needs::Permission(permission) = needs else {
            continue;
        };
        for stranger in strangers(&vault, *permission).await {
            let path = path.replace("{id}", "c06d0789-0a38-40be-b7cc-c28a718f76f1");
            // The body is not even JSON: whoever is turned away must not learn that.
            let request = stranger.client.request(method.clone(), &path).body("{");
            let answer = stranger.client.send(request).await;

            let case = format!("{method} {path} {}", stranger.name);
            assert_eq!(answer.status, stranger.expected, "{case}");
            assert_eq!(answer.body["status"], stranger.expected.as_u16(), "{case}");
            assert!(answer.body["title"].is_string(), "{case}");
            assert!(answer.body["detail"].is_string(), "{case}");
            tried += 1;
        }
    }

    let guarded = DOORS
        .iter()
        .filter(|(_, _, needs)| *needs != Needs::Nothing)
        .count();
    println!(
        "{guarded} guarded routes, {tried} refusals, {} open routes",
        DOORS.len() - guarded
    );
    assert_eq!(tried, guarded * 8);
}

/// Covers 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 1.10.
#[tokio::test]
async fn each_door_opens_to_its_own_permission_and_to_no_other() {
    use Permission::{TokenCreate, TokenDelete, TokenRead, TokenSearch, TokenUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let creator = vault.client(&tenant, grants(&[TokenCreate])).await;
    let all = [
        TokenCreate,
        TokenDelete,
        TokenRead,
        TokenSearch,
        TokenUpdate,
    ];
    let managing = [Permission::LogRead, Permission::TenantRead];

    for (method, path, needs) in DOORS {
        let Needs::Permission(needed) = needs else {
            continue;
        };
        let kind = *needed.kinds().last().unwrap();
        let all = if kind == ApplicationKind::Management {
            &managing[..]
        } else {
            &all[..]
        };
        let others = all
            .iter()
            .copied()
            .filter(|other| other != needed)
            .collect();
        for (held, is_welcome) in [(vec![*needed], true), (others, false)] {
            let new = json!({"type": "token", "data": "x"});
            let id = creator.post("/tokens", new.clone()).await.id();
            let (media, body) = match (method, *path) {
                (&Method::POST, "/tokens") => ("application/json", new),
                (&Method::POST, "/tokenize") => ("application/json", json!("x")),
                (&Method::POST, "/detokenize") => ("application/json", json!(id_expression(&id))),
                (&Method::PATCH, _) => ("application/merge-patch+json", json!({})),
                _ => ("application/json", json!({})),
            };
            let holder = vault.holder(&tenant, kind, grants(&held)).await;
            let client = vault.client_with(Some(&holder.key));
            let request = client.request(method.clone(), &path.replace("{id}", &id));
            let request = request.header("content-type", media).body(body.to_string());
            let answer = client.send(request).await;
            let case = format!("{method} {path} {held:?}: {}", answer.body);
            match is_welcome {
                true => assert!(answer.status.is_success(), "{case}"),
                false => assert_eq!(answer.status, StatusCode::FORBIDDEN, "{case}"),
            }
        }
    }
}

fn id_expression(id: &str) -> String {
    format!("{{{{ {id} }}}}")
}

#[tokio::test]
async fn open_doors_need_no_key() {
    let vault = TestVault::start().await;

    for (method, path, needs) in DOORS {
        if *needs == Needs::Nothing {
            let client = vault.client_with(None);
            let answer = client.send(client.request(method.clone(), path)).await;
            assert_eq!(answer.status, StatusCode::OK, "{method} {path}");
        }
    }
}

/// Everyone who lacks something that this permission's doors ask for.
async fn strangers(vault: &TestVault, permission: Permission) -> Vec<Stranger> {
    use ApplicationKind::{Management, Private, Public};

    let tenant = vault.tenant().await;
    let known = vault
        .holder(&tenant, Private, grants(&[Permission::TokenUse]))
        .await;
    let wrong_secret = format!("{}{}", &known.key[..known.key.len() - 4], "0000");
    let retold = known.key.replacen("_test_", "_prod_", 1);
    let unknown = ApiKey::generate(TenantKind::Test, "us", Private);
    // A public application cannot hold most permissions; it gets the one that it can.
    let public = match permission {
        Permission::TokenCreate => Permission::TokenIntentCreate,
        _ => Permission::TokenCreate,
    };
    let public = vault.holder(&tenant, Public, grants(&[public])).await;
    let management = vault
        .holder(&tenant, Management, grants(&[Permission::TenantRead]))
        .await;

    let stranger = |name, key: Option<&str>, expected| Stranger {
        name,
        client: vault.client_with(key),
        expected,
    };
    vec![
        stranger("without a key", None, StatusCode::UNAUTHORIZED),
        stranger(
            "with a malformed key",
            Some("key_test_us_pvt_x"),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with an unknown key",
            Some(unknown.expose()),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a wrong secret",
            Some(&wrong_secret),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a key retold as production",
            Some(&retold),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a public key",
            Some(&public.key),
            StatusCode::FORBIDDEN,
        ),
        stranger(
            "with a management key",
            Some(&management.key),
            StatusCode::FORBIDDEN,
        ),
        stranger(
            "without the permission",
            Some(&known.key),
            StatusCode::FORBIDDEN,
        ),
    ]
}
