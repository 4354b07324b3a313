//! Sessions: browser keys that a server authorizes.

mod authorize;
mod conditions;
mod lifetime;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, grants, held_by};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// A tenant with a browser, a server, and a client that creates tokens.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    browser: Client,
    browser_id: String,
    server: Client,
    creator: Client,
}

impl Fixture {
    async fn new() -> Self {
        Self::on(TestVault::start().await).await
    }

    async fn on(vault: TestVault) -> Self {
        let tenant = vault.tenant().await;
        let public = grants(&[Permission::TokenCreate]);
        let browser = vault.holder(&tenant, ApplicationKind::Public, public).await;
        // The server may grant everything that a session can hold.
        let all = || held_by(ApplicationKind::Private);
        let scoped: Vec<Permission> = all().filter(|held| held.is_scoped()).collect();
        let held = Grants {
            permissions: all().collect(),
            rules: vec![cloakroom_testkit::rule(1, "/", Transform::Reveal, &scoped)],
        };
        let server = vault.client(&tenant, held).await;
        Self {
            browser: vault.client_with(Some(&browser.key)),
            browser_id: browser.application.to_string(),
            server,
            creator: vault.client(&tenant, everything(Transform::Reveal)).await,
            tenant,
            vault,
        }
    }

    /// The time by the clock of the database.
    async fn now(&self) -> jiff::Timestamp {
        self.vault.vault.clock.now().await.unwrap()
    }

    async fn session(&self) -> (Client, String) {
        let created = create(&self.browser).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        let key = created.body["session_key"].as_str().unwrap();
        let nonce = created.body["nonce"].as_str().unwrap().to_owned();
        (self.vault.client_with(Some(key)), nonce)
    }

    /// A session that is authorized with these grants.
    async fn authorized(&self, mut body: Value) -> Client {
        let (session, nonce) = self.session().await;
        body["nonce"] = json!(nonce);
        let authorized = self.server.post("/sessions/authorize", body).await;
        assert_eq!(authorized.status, StatusCode::OK, "{}", authorized.body);
        assert!(authorized.bytes.is_empty());
        session
    }

    async fn token(&self, id: &str, container: &str) -> String {
        let token = json!({
            "id": id, "type": "token", "data": "secret", "mask": "{{ data | slice: 0, 2 }}",
            "containers": [container],
        });
        let created = self.creator.post("/tokens", token).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        format!("/tokens/{id}")
    }
}

/// Sends neither a body nor a content type, like the official clients.
async fn create(client: &Client) -> TestResponse {
    client
        .send(
            client
                .request(Method::POST, "/sessions")
                .header("content-length", "0"),
        )
        .await
}

fn rule(permissions: &[&str], transform: &str, scope: Value) -> Value {
    let mut rule = json!({
        "description": "A rule", "priority": 1, "transform": transform,
        "permissions": permissions,
    });
    rule.as_object_mut()
        .unwrap()
        .extend(scope.as_object().unwrap().clone());
    rule
}

fn condition(attribute: &str, operator: &str, value: &str) -> Value {
    json!({"attribute": attribute, "operator": operator, "value": value})
}

async fn client_of(fixture: &Fixture, kind: ApplicationKind, permission: Permission) -> Client {
    let holder = fixture
        .vault
        .holder(&fixture.tenant, kind, grants(&[permission]))
        .await;
    fixture.vault.client_with(Some(&holder.key))
}
