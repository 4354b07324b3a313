//! Every route with every permission and application type.

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::ids;
use cloakroom::members::{self, Email, NewInvitation, NewMember, Role};
use cloakroom::route_requirements::{ROUTES, Requirement, RouteRequirement};
use cloakroom_testkit::{Client, TestVault, grants, held_by, rule};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{CONCURRENCY, FORBIDDEN, UNKNOWN_ID, fill_path};

/// An application that holds a single permission.
struct SinglePermissionHolder {
    held: Permission,
    kind: ApplicationKind,
    /// Held by a rule for one container instead of everywhere.
    is_ruled: bool,
    client: Client,
}

/// One application per permission and application type that can hold it; scoped permissions also by a rule.
async fn single_permission_holders(vault: &TestVault) -> Vec<SinglePermissionHolder> {
    let shared = vault.tenant().await;
    let client = vault.client_with(None);
    let mut holders = Vec::new();
    for held in ALL_PERMISSIONS.iter().copied() {
        // This application does delete its tenant, so it gets a tenant of its own.
        let tenant = match held {
            Permission::TenantDelete => &vault.tenant().await,
            _ => &shared,
        };
        for kind in held.kinds().iter().copied() {
            for is_ruled in [false, true] {
                let grants = match is_ruled {
                    false => grants(&[held]),
                    true if held.is_scoped() => Grants {
                        rules: vec![rule(1, "/a/", Transform::Reveal, &[held])],
                        ..grants(&[])
                    },
                    true => continue,
                };
                let holder = vault.holder(tenant, kind, grants).await;
                holders.push(SinglePermissionHolder {
                    held,
                    kind,
                    is_ruled,
                    client: client.with_key(&holder.key),
                });
            }
        }
    }
    holders
}

impl SinglePermissionHolder {
    fn may_pass(&self, needs: Requirement) -> bool {
        match needs {
            Requirement::Nothing | Requirement::Key | Requirement::KeyInUrl => true,
            Requirement::Kinds(kinds) => kinds.contains(&self.kind),
            Requirement::AnyOf(needed) => needed.contains(&self.held),
            Requirement::Permissions(needed) => needed == [self.held],
            Requirement::PrivateKey(needed) => {
                needed == [self.held] && self.kind == ApplicationKind::Private
            }
        }
    }

    /// Sends a request to every route; returns the responses that contradict the route table.
    ///
    /// Every id is unknown and every body is invalid, so that no request changes anything and allowed callers get
    /// another error than a 403. Deleting the tenant always succeeds and therefore comes last.
    async fn check_all_routes(&self) -> Vec<String> {
        let mut routes: Vec<&RouteRequirement> = ROUTES.iter().collect();
        routes.sort_by_key(|route| route.needs.permissions() == [Permission::TenantDelete]);
        let mut wrong = Vec::new();
        for route in routes {
            let path = fill_path(route.path, UNKNOWN_ID, UNKNOWN_ID);
            let request = self.client.request(route.method.clone(), &path);
            let request = request.header("content-type", "application/json");
            let response = self.client.send(request.body("{")).await;

            let is_as_expected = match (self.may_pass(route.needs), response.status) {
                // A key in a header does not replace the key in the URL.
                (_, status) if route.needs == Requirement::KeyInUrl => {
                    status == StatusCode::UNAUTHORIZED
                }
                (true, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => false,
                (true, StatusCode::NOT_IMPLEMENTED) => route.path.starts_with("/reactors"),
                (true, status) => !status.is_server_error(),
                (false, status) => {
                    status == StatusCode::FORBIDDEN && response.problem()["code"] == "forbidden"
                }
            };
            if !is_as_expected {
                let Self { held, kind, .. } = self;
                let ruled = if self.is_ruled { " in /a/" } else { "" };
                let outcome = format!("{} {}", response.status, response.body);
                wrong.push(format!("{route} with {held}{ruled} of {kind}: {outcome}"));
            }
        }
        wrong
    }
}

/// The matrix of all routes, single permissions and application types that can hold them.
///
/// Covers 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 1.10, 16.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_accepts_its_own_permission_and_no_other() {
    let vault = TestVault::start_with_long_timeouts().await;
    let mut holders = single_permission_holders(&vault).await;
    let count = holders.len();

    let mut workers = JoinSet::new();
    while !holders.is_empty() {
        let chunk = holders.split_off(holders.len().saturating_sub(count.div_ceil(CONCURRENCY)));
        workers.spawn(async move {
            let mut wrong = Vec::new();
            for holder in chunk {
                wrong.extend(holder.check_all_routes().await);
            }
            wrong
        });
    }
    let wrong: Vec<String> = workers.join_all().await.into_iter().flatten().collect();

    let cells = count * ROUTES.len();
    println!("{cells} cells: {count} holders, {} routes", ROUTES.len());
    assert!(wrong.is_empty(), "{} of {cells}: {wrong:#?}", wrong.len());
}

/// Valid requests succeed with exactly the required permissions and fail with all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_required_permissions_are_sufficient_and_necessary() {
    let vault = TestVault::start_with_long_timeouts().await;
    let client = vault.client_with(None);
    let shared = vault.tenant().await;
    for route in ROUTES {
        let needed = route.needs.permissions();
        for kind in ApplicationKind::ALL {
            let fits = needed.iter().all(|permission| permission.fits(kind));
            if needed.is_empty() || !fits || !route.needs.admits(kind) {
                continue;
            }
            // Changes to a tenant must not affect the requests to other routes.
            let tenant = match route.path.starts_with("/tenants/self") {
                true => &vault.tenant().await,
                false => &shared,
            };
            let others = held_by(kind).filter(|other| !needed.contains(other));
            for (held, is_allowed) in [(others.collect(), false), (needed.to_vec(), true)] {
                let (id, key_id) = create_resource(&vault, tenant, route).await;
                let holder = vault.holder(tenant, kind, grants(&held)).await;
                let client = client.with_key(&holder.key);
                let path = fill_path(route.path, &id, &key_id);
                let (media, body) = valid_body(route, &id);
                let request = client.request(route.method.clone(), &path);
                let request = request.header("content-type", media).body(body.to_string());
                let response = client.send(request).await;

                let case = format!("{route} of {kind} with {held:?}: {}", response.body);
                // Success requires a card network or a destination, which other tests provide.
                let needs_peer =
                    route.path.starts_with("/3ds/") || route.path.starts_with("/proxy");
                let is_accepted = match needs_peer {
                    true => response.status.is_client_error() && response.status != FORBIDDEN,
                    false => response.status.is_success(),
                };
                match is_allowed {
                    true => assert!(is_accepted, "{case}"),
                    false => assert_eq!(response.status, FORBIDDEN, "{case}"),
                }
            }
        }
    }
}

/// Creates a resource that the route can address; returns its id and that of its key, if it has one.
async fn create_resource(
    vault: &TestVault,
    tenant: &Tenant,
    route: &RouteRequirement,
) -> (String, String) {
    let path = route.path;
    if path.starts_with("/applications") {
        // The application holds no more than the allowed caller; more would need `application:grant`.
        let held = grants(route.needs.permissions());
        let managed = vault
            .holder(tenant, ApplicationKind::Management, held)
            .await;
        return (managed.application.to_string(), managed.key_id.to_string());
    }
    let creating = [Permission::TokenCreate, Permission::TokenIntentCreate];
    let creator = vault
        .holder(tenant, ApplicationKind::Private, grants(&creating))
        .await;
    if path.starts_with("/orchestration/") {
        return ("stripe-card".to_owned(), String::new());
    }
    let id = if path.starts_with("/tenants/self") {
        create_tenant_resource(vault, tenant, path).await
    } else if path.starts_with("/webhooks") {
        create_webhook(vault, tenant).await
    } else if path.starts_with("/keys") {
        let creating = grants(&[Permission::KeysCreate]);
        let manager = vault.holder(tenant, ApplicationKind::Management, creating);
        let manager = vault.client_with(Some(&manager.await.key));
        manager.post("/keys", json!({})).await.id()
    } else if path.starts_with("/checkout") {
        let client = vault.client_with(Some(&creator.key));
        client.post("/checkout/sessions", new_checkout()).await.id()
    } else if path.starts_with("/proxies") {
        let creating = grants(&[Permission::ProxyCreate]);
        let manager = vault.holder(tenant, ApplicationKind::Management, creating);
        let manager = vault.client_with(Some(&manager.await.key));
        manager.post("/proxies", new_proxy()).await.id()
    } else {
        let endpoint = match path.starts_with("/token-intents") {
            true => "/token-intents",
            false => "/tokens",
        };
        let client = vault.client_with(Some(&creator.key));
        let new = match path.starts_with("/enrichments") {
            true => json!({"type": "bank", "data":
                {"routing_number": "021000021", "account_number": "00001"}}),
            false => json!({"type": "token", "data": "x"}),
        };
        client.post(endpoint, new).await.id()
    };
    (id, String::new())
}

fn new_checkout() -> Value {
    let url = "http://localhost:3000/";
    json!({"return_url": url, "cancel_url": url})
}

fn new_proxy() -> Value {
    json!({"name": "n", "destination_url": "https://api.example.com"})
}

/// A body that the route accepts, and its media type.
fn valid_body(route: &RouteRequirement, id: &str) -> (&'static str, Value) {
    let body = match (&route.method, route.path) {
        (&Method::POST, "/tokens" | "/token-intents") => json!({"type": "token", "data": "x"}),
        (&Method::POST, "/enrichments/bank-account-verify") => json!({ "token_id": id }),
        (&Method::POST, "/tokenize") => json!("x"),
        (&Method::POST, "/checkout/sessions") => new_checkout(),
        (&Method::POST, "/detokenize") => json!(format!("{{{{ {id} }}}}")),
        (&Method::PATCH, _) => return ("application/merge-patch+json", json!({})),
        (&Method::POST | &Method::PUT, "/applications" | "/applications/{id}") => {
            let held: Vec<&str> = route
                .needs
                .permissions()
                .iter()
                .map(|it| it.name())
                .collect();
            json!({"name": "n", "type": "management", "permissions": held})
        }
        (&Method::POST | &Method::PUT, "/proxies" | "/proxies/{id}") => new_proxy(),
        (&Method::POST, "/webhooks/{id}/replay") => {
            json!({"from": "2030-01-01T00:00:00Z", "to": "2030-01-02T00:00:00Z"})
        }
        (&Method::POST | &Method::PUT, path) if path.starts_with("/webhooks") => webhook_body(),
        (&Method::POST | &Method::PUT, path) if path.starts_with("/tenants/self") => {
            json!({"name": "n", "email": "a@b", "role": "ADMIN", "member_id": id})
        }
        _ => json!({}),
    };
    ("application/json", body)
}

fn webhook_body() -> Value {
    json!({"name": "n", "url": "https://hooks.example.com/", "events": ["token.created"]})
}

/// Creates a webhook instead of those that the tenant has, which could be the maximum; returns its id.
async fn create_webhook(vault: &TestVault, tenant: &Tenant) -> String {
    use Permission::{WebhookCreate, WebhookDelete, WebhookRead};
    let managing = grants(&[WebhookCreate, WebhookDelete, WebhookRead]);
    let manager = vault.holder(tenant, ApplicationKind::Management, managing);
    let manager = vault.client_with(Some(&manager.await.key));
    for webhook in manager.get("/webhooks").await.items() {
        let id = webhook["id"].as_str().unwrap();
        manager.delete(&format!("/webhooks/{id}")).await;
    }
    manager.post("/webhooks", webhook_body()).await.id()
}

/// Creates a member or invitation, or requests the deletion, of the tenant, as the route requires; returns its id.
async fn create_tenant_resource(vault: &TestVault, tenant: &Tenant, path: &str) -> String {
    if path == "/tenants/self/branding" {
        let updating = grants(&[Permission::TenantUpdate]);
        let manager = vault.holder(tenant, ApplicationKind::Management, updating);
        let manager = vault.client_with(Some(&manager.await.key));
        manager.put(path, json!({"name": "n"})).await;
        return tenant.id.uuid.to_string();
    }
    if path == "/tenants/self/deletion" {
        let kind = ApplicationKind::Management;
        let deleting = grants(&[Permission::TenantDelete]);
        let manager = vault.holder(tenant, kind, deleting).await;
        let manager = vault.client_with(Some(&manager.key));
        manager.delete("/tenants/self").await;
        return tenant.id.uuid.to_string();
    }
    let email = format!("{}@example.com", ids::new_uuid());
    let email = Email::parse(&email).unwrap();
    if path.starts_with("/tenants/self/invitations") {
        let role = Role::Admin;
        let new = NewInvitation { email, role };
        let invited = members::invite_as_operator(&vault.vault, tenant.id, &new).await;
        return invited.unwrap().0.id.to_string();
    }
    let role = match path {
        "/tenants/self/owner" => match members::owner_of(&vault.vault, tenant.id).await.unwrap() {
            Some(_) => Role::Admin,
            None => Role::Owner,
        },
        _ => Role::ReadOnly,
    };
    let new = NewMember {
        email,
        role,
        first_name: None,
        last_name: None,
    };
    let member = members::add(&vault.vault, tenant.id, new).await;
    member.unwrap().id.to_string()
}
