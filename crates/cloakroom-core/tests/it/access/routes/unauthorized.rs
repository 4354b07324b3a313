//! Every protected route with callers that it must reject.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cloakroom::access::{ApiKey, ApplicationKind, Permission, Tenant, TenantKind};
use cloakroom::route_requirements::{ROUTES, Requirement, RouteRequirement};
use cloakroom_testkit::{Client, TestVault, grants, held_by};
use http::StatusCode;

use super::{UNKNOWN_ID, fill_path};

/// A caller that every protected route must reject, and the expected status.
struct UnauthorizedCaller {
    name: &'static str,
    client: Client,
    expected: StatusCode,
}

#[tokio::test]
async fn every_protected_route_rejects_unauthorized_callers() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut callers_by_permission = HashMap::new();
    let mut rejections = 0;

    for RouteRequirement {
        method,
        path,
        needs,
    } in ROUTES
    {
        if matches!(needs, Requirement::Nothing | Requirement::KeyInUrl) {
            continue;
        }
        let needed = needs.permissions().first().copied();
        if let Entry::Vacant(vacant) = callers_by_permission.entry(needed) {
            vacant.insert(unauthorized_callers(&vault, &tenant, needed).await);
        }
        for caller in &callers_by_permission[&needed] {
            let path = fill_path(path, UNKNOWN_ID, UNKNOWN_ID);
            // The body is not JSON; rejected callers must not learn that.
            let request = caller.client.request(method.clone(), &path).body("{");
            let response = caller.client.send(request).await;

            let case = format!("{method} {path} {}", caller.name);
            assert_eq!(response.status, caller.expected, "{case}");
            assert_eq!(
                response.problem()["status"],
                caller.expected.as_u16(),
                "{case}"
            );
            assert!(response.problem()["title"].is_string(), "{case}");
            assert!(response.problem()["detail"].is_string(), "{case}");
            rejections += 1;
        }
    }

    let is_open = |route: &&RouteRequirement| {
        matches!(route.needs, Requirement::Nothing | Requirement::KeyInUrl)
    };
    let open = ROUTES.iter().filter(is_open);
    let open = open.count();
    let permitted = ROUTES.iter().map(|route| route.needs.permissions());
    let permitted = permitted.filter(|needed| !needed.is_empty()).count();
    let protected = ROUTES.len() - open;
    println!("{protected} protected routes, {rejections} rejections, {open} public routes");
    assert_eq!(rejections, protected * 5 + permitted * 3);
}

/// Callers without a valid key, and callers that lack the permission.
async fn unauthorized_callers(
    vault: &TestVault,
    tenant: &Tenant,
    permission: Option<Permission>,
) -> Vec<UnauthorizedCaller> {
    use ApplicationKind::{Management, Private, Public};

    let known = vault
        .holder(tenant, Private, grants(&[Permission::DocumentsRead]))
        .await;
    let wrong_secret = format!("{}{}", &known.key[..known.key.len() - 4], "0000");
    let changed_environment = known.key.replacen("_test_", "_prod_", 1);
    let unknown = ApiKey::generate(TenantKind::Test, "us", Private);
    // Public applications can hold few permissions; this one gets another than the required one.
    let public = match permission {
        Some(Permission::TokenCreate) => Permission::TokenIntentCreate,
        _ => Permission::TokenCreate,
    };
    let public = vault.holder(tenant, Public, grants(&[public])).await;
    let others: Vec<Permission> = held_by(Management)
        .filter(|other| Some(*other) != permission)
        .collect();
    let management = vault.holder(tenant, Management, grants(&others)).await;

    let keyless = vault.client_with(None);
    let caller = |name, key: Option<&str>, expected| UnauthorizedCaller {
        name,
        client: key.map_or_else(|| keyless.clone(), |key| keyless.with_key(key)),
        expected,
    };
    let mut callers = vec![
        caller("without a key", None, StatusCode::UNAUTHORIZED),
        caller(
            "with a malformed key",
            Some("key_test_us_pvt_x"),
            StatusCode::UNAUTHORIZED,
        ),
        caller(
            "with an unknown key",
            Some(unknown.expose()),
            StatusCode::UNAUTHORIZED,
        ),
        caller(
            "with a wrong secret",
            Some(&wrong_secret),
            StatusCode::UNAUTHORIZED,
        ),
        caller(
            "with a test key changed to production",
            Some(&changed_environment),
            StatusCode::UNAUTHORIZED,
        ),
        caller(
            "with a public key",
            Some(&public.key),
            StatusCode::FORBIDDEN,
        ),
        caller(
            "with a management key",
            Some(&management.key),
            StatusCode::FORBIDDEN,
        ),
        caller(
            "without the permission",
            Some(&known.key),
            StatusCode::FORBIDDEN,
        ),
    ];
    if permission.is_none() {
        callers.retain(|caller| caller.expected == StatusCode::UNAUTHORIZED);
    }
    callers
}
