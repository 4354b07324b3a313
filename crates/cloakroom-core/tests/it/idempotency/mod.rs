//! Idempotency keys: a repeated request is executed once and gets the same response.

mod keys;
mod leases;
mod replay;
mod secrecy;

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_postgres::Client as Database;

const CARD: &str = "4242424242424242";

fn note(text: &str) -> Value {
    json!({"type": "token", "data": text})
}

/// Sends a request with an idempotency key.
async fn send(
    client: &Client,
    method: &Method,
    path: &str,
    key: &str,
    body: &Value,
) -> TestResponse {
    let media = match *method == Method::PATCH {
        true => "application/merge-patch+json",
        false => "application/json",
    };
    let request = client
        .request(method.clone(), path)
        .header("bt-idempotency-key", key)
        .header("content-type", media);
    client.send(request.body(body.to_string())).await
}

async fn post(client: &Client, path: &str, key: &str, body: Value) -> TestResponse {
    send(client, &Method::POST, path, key, &body).await
}

/// The parts of a response that a replay must repeat.
/// What a replay repeats: everything but keys and secrets, which are not stored.
fn replayable(response: &TestResponse) -> (StatusCode, &str, &str, Value) {
    let mut body = response.body.clone();
    if let Some(members) = body.as_object_mut() {
        for secret in ["key", "keys", "secret", "configuration"] {
            members.shift_remove(secret);
        }
    }
    let media = response.header("content-type");
    (response.status, response.header("location"), media, body)
}

async fn count(database: &Database, what: &str) -> i64 {
    let sql = format!("select count(*) from {what}");
    database.query_one(&sql, &[]).await.unwrap().get(0)
}

/// A vault with a tenant, and a client of every application kind with all its permissions.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    private: Client,
    public: Client,
    management: Client,
    database: Database,
}

impl Fixture {
    async fn start() -> Self {
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        // Masked, because revealed data is not stored and its replay would differ from the first response.
        let mut held = everything(Transform::Mask);
        held.permissions = [Permission::TokenIntentCreate, Permission::TokenUse]
            .into_iter()
            .collect();
        let private = vault.client(&tenant, held).await;
        let public = grants(&[Permission::TokenCreate]);
        let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
        let all = ALL_PERMISSIONS.iter().copied();
        let kind = ApplicationKind::Management;
        let fitting: Vec<Permission> = all.filter(|one| one.fits(kind)).collect();
        let management = vault.holder(&tenant, kind, grants(&fitting)).await;
        let database = vault.database.connect().await;
        Self {
            public: vault.client_with(Some(&public.key)),
            management: vault.client_with(Some(&management.key)),
            private,
            database,
            vault,
            tenant,
        }
    }

    /// Every write operation on tokens, with a valid body.
    async fn token_writes(&self) -> Vec<(&Client, Write)> {
        let token = self.private.post("/tokens", note("before")).await.id();
        let session = self.public.post("/sessions", json!({})).await;
        let nonce = &session.body["nonce"];
        let card = json!({"type": "card", "data": {"number": CARD}});
        let writes = [
            ("POST /tokens".to_owned(), card.clone()),
            (format!("PATCH /tokens/{token}"), json!({"data": "after"})),
            (
                "POST /tokenize".to_owned(),
                json!({"a": "1", "b": [2, card]}),
            ),
            ("POST /token-intents".to_owned(), card),
            (
                "POST /sessions/authorize".to_owned(),
                json!({"nonce": nonce, "permissions": ["token:read"]}),
            ),
        ];
        writes.map(|write| (&self.private, write)).into()
    }

    /// Every write operation on the tenant.
    async fn management_writes(&self) -> Vec<(&Client, Write)> {
        let manager = &self.management;
        let new = json!({"name": "A", "type": "private", "permissions": ["token:read"]});
        let application = manager.post("/applications", new.clone()).await.id();
        let invitation = json!({"email": "ada@example.com"});
        let invitations = "/tenants/self/invitations";
        let invited = manager.post(invitations, invitation.clone()).await.id();
        let changed = json!({"name": "B", "permissions": ["token:create"]});
        let writes = [
            ("POST /applications".to_owned(), new),
            (format!("PUT /applications/{application}"), changed),
            (format!("POST /applications/{application}/keys"), json!({})),
            ("PUT /tenants/self".to_owned(), json!({"name": "T2"})),
            (
                "PUT /tenants/self/quotas".to_owned(),
                json!({"tokenize_limit": 6}),
            ),
            (
                "PUT /tenants/self/security-contact".to_owned(),
                invitation.clone(),
            ),
            (format!("POST {invitations}"), invitation),
            (format!("POST {invitations}/{invited}/resend"), json!({})),
            ("POST /keys".to_owned(), json!({})),
        ];
        writes.map(|write| (manager, write)).into()
    }
}

/// Method and path, and a body.
type Write = (String, Value);
