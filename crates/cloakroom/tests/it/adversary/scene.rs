//! A vault in use: two tenants, a row in nearly every table, and changes that left older rows behind.

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::ids::TenantId;
use cloakroom::members::{self, Email, NewMember, Role};
use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_testkit::{
    Client, TestApplication, TestDatabase, TestDestination, TestResponse, TestVault, everything,
    grants, held_by, rule, use_long_timeouts,
};
use http::Method;
use serde_json::{Value, json};
use tokio_postgres::Client as Database;

use super::rows::{Table, list_tables};
use super::transfers::Transfers;

/// The rows of every table at one time.
pub(super) type Snapshot = BTreeMap<String, Vec<Value>>;

pub(super) struct Scene {
    pub(super) vault: TestVault,
    pub(super) database: Database,
    pub(super) tables: Vec<Table>,
    /// Rows before the vault changed and deleted some of them.
    pub(super) old: Snapshot,
    pub(super) clients: Clients,
    pub(super) resources: Resources,
    destination: TestDestination,
}

/// Clients with different rights.
pub(super) struct Clients {
    pub(super) manager: Client,
    pub(super) revealing: Client,
    pub(super) masking: Client,
    pub(super) session: Client,
    /// Could reveal everything before, and may only create now.
    pub(super) narrowed: Client,
    /// The application is deleted.
    pub(super) deleted: Client,
    /// The key is deleted.
    pub(super) replaced: Client,
    /// The tenant is deleted.
    pub(super) former: Client,
    pub(super) browser: Client,
    narrowed_id: String,
    pub(super) deleted_id: String,
    replaced_key: String,
}

/// What the clients created.
pub(super) struct Resources {
    pub(super) card: Value,
    pub(super) intent: Value,
    pub(super) deleted_intent: Value,
    pub(super) client_key: Value,
    pub(super) deleted_client_key: Value,
    pub(super) webhook: Value,
    pub(super) deleted_webhook: Value,
    pub(super) proxy: Value,
    pub(super) deleted_proxy: Value,
    pub(super) checkouts: [Value; 2],
    deleted_invitation: Value,
}

impl Scene {
    pub(super) async fn set() -> Self {
        let destination = TestDestination::start().await;
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            use_long_timeouts(config);
            destination.allow(config);
            config.tenants.immediate_deletion = true;
        })
        .await;
        let database = vault.database.connect().await;
        let hosts = [("threeds_callback_hosts", "shop.example")];
        let tenant = vault.tenant_with(&hosts).await;
        let clients = Clients::create(&vault, &tenant).await;
        let resources = Resources::create(&clients, &destination).await;
        add_members(&vault, &tenant).await;
        let transfers = Transfers::create(&vault, &tenant).await;
        let mut scene = Self {
            tables: list_tables(&database).await,
            old: Snapshot::new(),
            vault,
            database,
            clients,
            resources,
            destination,
        };
        let other = scene.vault.tenant().await;
        let former_manager = holder(&scene.vault, &other, ApplicationKind::Management).await;
        scene.clients.former = scene
            .vault
            .client(&other, everything(Transform::Reveal))
            .await;
        let of_another = new_token("order 17", "of another tenant");
        expect(201, scene.clients.former.post("/tokens", of_another).await);

        scene.vault.vault.audit.checkpoint().await.unwrap();
        scene.old = scene.snapshot().await;
        transfers.change(&scene.vault, &tenant).await;
        scene.rotate_key().await;
        scene.change_rights().await;
        scene.change_resources().await;
        let former_manager = scene.vault.client_with(Some(&former_manager.key));
        expect(204, former_manager.delete("/tenants/self").await);
        scene.vault.vault.audit.checkpoint().await.unwrap();
        scene
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        for table in &self.tables {
            snapshot.insert(table.name.clone(), table.rows(&self.database).await);
        }
        snapshot
    }

    /// Replaces and destroys the data key; its row could be put back.
    async fn rotate_key(&self) {
        let (node, purpose) = (&self.vault.vault, KeyPurpose::Data);
        let tenant = TenantId {
            number: 1,
            uuid: self
                .database
                .query_one("select public_id from tenant where tenant_id = 1", &[])
                .await
                .unwrap()
                .get(0),
        };
        rotation::start(node, tenant, purpose, "tests")
            .await
            .unwrap();
        crate::rotation::advance_to(node, Phase::Proved).await;
        rotation::retire(node, tenant, purpose).await.unwrap();
    }

    /// Takes rights away; the rows that granted them could be put back.
    async fn change_rights(&self) {
        let Clients {
            manager,
            narrowed_id,
            deleted_id,
            replaced_key,
            ..
        } = &self.clients;
        let narrowed = json!({"name": "Narrowed", "permissions": ["token:create"]});
        let path = format!("/applications/{narrowed_id}");
        expect(200, manager.put(&path, narrowed).await);
        let path = format!("/applications/{deleted_id}");
        expect(204, manager.delete(&path).await);
        expect(204, manager.delete(replaced_key).await);
        let quotas = json!({"card_velocity_limit": 4});
        expect(200, manager.put("/tenants/self/quotas", quotas).await);
        let path = path_of(
            "/tenants/self/invitations",
            &self.resources.deleted_invitation,
        );
        expect(204, manager.delete(&path).await);
    }

    /// Changes and deletes resources.
    async fn change_resources(&self) {
        let (manager, revealing) = (&self.clients.manager, &self.clients.revealing);
        let resources = &self.resources;
        let newer = json!({"data": {"secret": "newer"}, "metadata": {"who": "newer"}});
        expect(200, revealing.patch(UPDATED, newer).await);
        expect(204, revealing.delete(DELETED).await);
        let intent = path_of("/token-intents", &resources.deleted_intent);
        expect(204, revealing.delete(&intent).await);
        let moved = new_webhook(&self.destination.url("/new"));
        let path = path_of("/webhooks", &resources.webhook);
        expect(200, manager.put(&path, moved).await);
        let moved = new_proxy(&self.destination.url("/v2"));
        let path = path_of("/proxies", &resources.proxy);
        expect(200, manager.put(&path, moved).await);
        let renamed = json!({"name": "Hats"});
        expect(200, manager.put("/tenants/self/branding", renamed).await);
        for deleted in [
            path_of("/keys", &resources.deleted_client_key),
            path_of("/webhooks", &resources.deleted_webhook),
            path_of("/proxies", &resources.deleted_proxy),
        ] {
            expect(204, manager.delete(&deleted).await);
        }
    }
}

/// A token that nothing changes.
pub(super) const VICTIM: &str = "/tokens/order%2017";
pub(super) const UPDATED: &str = "/tokens/order%2018";
pub(super) const DELETED: &str = "/tokens/order%2019";

impl Clients {
    async fn create(vault: &TestVault, tenant: &Tenant) -> Self {
        let client = |holder: &TestApplication| vault.client_with(Some(&holder.key));
        let manager = holder(vault, tenant, ApplicationKind::Management).await;
        let revealing = client(&holder(vault, tenant, ApplicationKind::Private).await);
        let private = async || {
            let granted = everything(Transform::Reveal);
            vault
                .holder(tenant, ApplicationKind::Private, granted)
                .await
        };
        let (narrowed, deleted, replaced) = (private().await, private().await, private().await);
        let (application, key) = (replaced.application, replaced.key_id);
        let public = grants(&[Permission::TokenCreate]);
        let browser = vault.holder(tenant, ApplicationKind::Public, public).await;
        let browser = client(&browser);
        Self {
            session: session(vault, &browser, &revealing).await,
            browser,
            manager: client(&manager),
            revealing,
            masking: vault.client(tenant, everything(Transform::Mask)).await,
            narrowed: client(&narrowed),
            deleted: client(&deleted),
            replaced: client(&replaced),
            former: client(&deleted),
            narrowed_id: narrowed.application.to_string(),
            deleted_id: deleted.application.to_string(),
            replaced_key: format!("/applications/{application}/keys/{key}"),
        }
    }
}

impl Resources {
    async fn create(clients: &Clients, destination: &TestDestination) -> Self {
        let (manager, revealing) = (&clients.manager, &clients.revealing);
        let texts = ["first", "second", "third", "fourth"];
        for (text, number) in texts.into_iter().zip(17..) {
            let new = new_token(&format!("order {number}"), text);
            expect(201, revealing.post("/tokens", new).await);
        }
        expect(201, create_once(revealing).await);
        for text in ["sixth", "seventh"] {
            let mut new = new_token(&format!("claimed {text}"), text);
            new["deduplicate_token"] = json!(true);
            expect(201, revealing.post("/tokens", new).await);
        }
        let hook = new_webhook(&destination.url("/hook"));
        let proxy = new_proxy(&destination.url("/v1"));
        let intent = new_card("4000056655665556");
        let page = json!({"return_url": "https://shop.example/thanks", "cancel_url": "https://shop.example/cart"});
        let invited = json!({"email": "eve@example.com", "role": "ADMIN"});
        let branding = json!({"name": "Coats"});
        expect(200, manager.put("/tenants/self/branding", branding).await);
        let quotas = json!({"card_velocity_limit": 5});
        expect(200, manager.put("/tenants/self/quotas", quotas).await);
        expect(
            201,
            revealing
                .post("/tokens", new_card("5555555555554444"))
                .await,
        );
        let manage = async |path, new: &Value| expect(201, manager.post(path, new.clone()).await);
        let create = async |path, new: &Value| expect(201, revealing.post(path, new.clone()).await);
        Self {
            card: create("/tokens", &new_card("4242424242424242")).await,
            intent: create("/token-intents", &intent).await,
            deleted_intent: create("/token-intents", &intent).await,
            client_key: manage("/keys", &json!({})).await,
            deleted_client_key: manage("/keys", &json!({})).await,
            webhook: manage("/webhooks", &hook).await,
            deleted_webhook: manage("/webhooks", &hook).await,
            proxy: manage("/proxies", &proxy).await,
            deleted_proxy: manage("/proxies", &proxy).await,
            checkouts: [
                create("/checkout/sessions", &page).await,
                create("/checkout/sessions", &page).await,
            ],
            deleted_invitation: manage("/tenants/self/invitations", &invited).await,
        }
    }
}

/// Creates a token with an idempotency key, or replays the stored response.
pub(super) async fn create_once(client: &Client) -> TestResponse {
    let request = client
        .request(Method::POST, "/tokens")
        .header("bt-idempotency-key", "once")
        .header("content-type", "application/json");
    let new = new_token("order 21", "fifth");
    client.send(request.body(new.to_string())).await
}

async fn add_members(vault: &TestVault, tenant: &Tenant) {
    for (name, role) in [("ada", Role::Owner), ("bob", Role::Admin)] {
        let new = NewMember {
            email: Email::parse(&format!("{name}@example.com")).unwrap(),
            role,
            first_name: None,
            last_name: None,
        };
        members::add(&vault.vault, tenant.id, new).await.unwrap();
    }
}

fn expect(status: u16, response: TestResponse) -> Value {
    assert_eq!(response.status.as_u16(), status, "{}", response.body);
    response.body
}

pub(super) fn path_of(collection: &str, created: &Value) -> String {
    format!("{collection}/{}", created["id"].as_str().unwrap())
}

fn new_token(id: &str, text: &str) -> Value {
    json!({
        "id": id, "type": "token", "data": {"secret": text},
        "mask": {"secret": "{{ data.secret | slice: 0, 1 }}"}, "metadata": {"who": text},
        "search_indexes": ["{{ data.secret }}"], "fingerprint_expression": "{{ data.secret }}",
        "expires_at": "2099-01-01T00:00:00+00:00",
    })
}

fn new_card(number: &str) -> Value {
    json!({"type": "card",
        "data": {"number": number, "expiration_month": 12, "expiration_year": 2040, "cvc": "123"}})
}

fn new_webhook(url: &str) -> Value {
    json!({"name": "Ledger", "url": url, "events": ["token.created"]})
}

fn new_proxy(url: &str) -> Value {
    json!({"name": "Payments", "destination_url": url, "require_auth": true})
}

/// An application with everything that its type can hold.
async fn holder(vault: &TestVault, tenant: &Tenant, kind: ApplicationKind) -> TestApplication {
    let scoped: Vec<Permission> = held_by(kind).filter(|held| held.is_scoped()).collect();
    let granted = Grants {
        permissions: held_by(kind).collect(),
        rules: match scoped[..] {
            [] => Vec::new(),
            _ => vec![rule(1, "/", Transform::Reveal, &scoped)],
        },
    };
    vault.holder(tenant, kind, granted).await
}

/// A session that may read tokens in clear.
async fn session(vault: &TestVault, browser: &Client, server: &Client) -> Client {
    let created = expect(201, browser.post("/sessions", json!({})).await);
    let rule = json!({"description": "Read", "priority": 1, "container": "/", "transform": "reveal",
        "permissions": ["token:read"]});
    let authorization = json!({"nonce": created["nonce"], "rules": [rule]});
    expect(200, server.post("/sessions/authorize", authorization).await);
    vault.client_with(created["session_key"].as_str())
}
