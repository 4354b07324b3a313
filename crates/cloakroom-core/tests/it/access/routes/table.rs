//! The route table, compared with the OpenAPI document, and routes without permissions.

use std::collections::BTreeSet;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::route_requirements::{ROUTES, Requirement};
use cloakroom_testkit::{TestVault, grants, held_by};
use http::{Method, StatusCode};

use super::{FORBIDDEN, UNKNOWN_ID, fill_path};

#[test]
fn the_route_table_lists_every_route() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), path.clone()));
        }
    }

    let listed: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|route| (route.method.to_string(), route.path.to_owned()))
        .collect();

    assert_eq!(listed, routes);
    assert_eq!(listed.len(), ROUTES.len());
}

#[test]
fn descriptions_name_the_requirements_of_each_route() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    for route in ROUTES {
        let method = route.method.as_str().to_lowercase();
        let description = document["paths"][route.path][&method]["description"].as_str();
        let description = description.unwrap_or_default().replace('\n', " ");

        let required = match route.needs {
            Requirement::Nothing | Requirement::Key | Requirement::KeyInUrl => None,
            Requirement::Kinds(_) | Requirement::AnyOf(_) | Requirement::Permissions(_) => {
                Some(route.needs.to_string())
            }
            Requirement::PrivateKey(needed) => {
                assert!(description.contains("and a private key"), "{route}");
                Some(Requirement::Permissions(needed).to_string())
            }
        };
        assert_eq!(
            required_in(&description),
            required,
            "{route}: {description}"
        );
        if description.contains("Any valid key") {
            assert_eq!(route.needs, Requirement::Key, "{route}: {description}");
        }
    }
}

/// The permissions or application types that follow the only "Requires" of a description.
fn required_in(description: &str) -> Option<String> {
    let (_, required) = description.split_once("Requires ")?;
    assert!(!required.contains("Requires "), "{description}");
    let (mut named, mut joined) = (Vec::new(), " and ");
    let mut rest = required;
    while let Some((name, after)) = rest.strip_prefix('`').and_then(|it| it.split_once('`')) {
        named.push(format!("`{name}`"));
        if after.starts_with(" or `") {
            joined = " or ";
        }
        rest = after.strip_prefix(joined).unwrap_or_default();
    }
    match named.is_empty() {
        true => Some(required.split(['.', ';', ',']).next()?.to_owned()),
        false => Some(named.join(joined)),
    }
}

#[tokio::test]
async fn routes_for_any_key_accept_every_application_type() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;

    for kind in ApplicationKind::ALL {
        let one: Vec<Permission> = held_by(kind).take(1).collect();
        let holder = vault.holder(&tenant, kind, grants(&one)).await;
        let client = vault.client_with(Some(&holder.key));
        for route in ROUTES {
            if route.needs != Requirement::Key {
                continue;
            }
            let (method, path) = (&route.method, route.path);
            let id = match path {
                "/application-templates/{id}" => "6f486ec1-ddf4-4040-b7f1-3ddca4209495",
                _ => UNKNOWN_ID,
            };
            let request = client.request(method.clone(), &fill_path(path, id, UNKNOWN_ID));
            let response = client.send(request).await;
            let expected = match path {
                "/applications/{id}/regenerate" | "/tenants/self/connections" => StatusCode::GONE,
                path if path.starts_with("/reactor-formulas") => StatusCode::GONE,
                path if path.starts_with("/reactors") => StatusCode::NOT_IMPLEMENTED,
                _ => StatusCode::OK,
            };
            assert_eq!(response.status, expected, "{kind} {method} {path}");
        }
    }
}

#[tokio::test]
async fn public_routes_need_no_key() {
    let vault = TestVault::start().await;
    // The key that verifies webhooks exists once there is a webhook.
    let is_in_use = false;
    let key = cloakroom::webhooks::signatures::ensure_key(&vault.vault, is_in_use).await;
    key.unwrap();

    for route in ROUTES {
        if route.needs == Requirement::Nothing {
            let client = vault.client_with(None);
            let path = route.path.replace("{name}", "page.css");
            let request = client.request(route.method.clone(), &path);
            let response = client.send(request).await;
            let status = response.status;
            assert!(
                ![StatusCode::UNAUTHORIZED, FORBIDDEN].contains(&status),
                "{route}: {status}"
            );
            // Their names in the route table are not those of existing pages.
            let is_found = !["/pages/branding/", "/checkout/{key}"]
                .iter()
                .any(|prefix| path.starts_with(prefix));
            assert_eq!(
                status.is_success(),
                route.method == Method::GET && is_found,
                "{route}: {status}"
            );
        }
        if route.needs == Requirement::KeyInUrl {
            let client = vault.client_with(None);
            let request = client.request(route.method.clone(), route.path);
            let response = client.send(request).await;
            assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{route}");
        }
    }
}
