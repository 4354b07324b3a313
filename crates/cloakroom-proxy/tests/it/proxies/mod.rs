//! Pre-configured proxies: their management, their secrets, and what their transforms do to requests and responses.

mod allowed_requests;
mod events;
mod invoke;
mod manage;
mod secrecy;
mod terraform;
mod transforms;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant};
use cloakroom::config::Config;
use cloakroom_testkit::{
    Client, TestApplication, TestDatabase, TestDestination, TestResponse, TestVault, grants,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const UNKNOWN_ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
const CARD_NUMBER: &str = "4242424242424242";

/// A vault, a destination that it may send requests to, and the keys of a tenant.
struct Fixture {
    destination: TestDestination,
    vault: TestVault,
    tenant: Tenant,
    /// May do everything with proxies, and grant everything.
    manager: Client,
    /// A private application that may invoke proxies, and create and read tokens.
    caller: Client,
    /// The application of transforms.
    application: TestApplication,
}

impl Fixture {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts with modified settings of the tenant.
    async fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::configured(settings, |_| {}).await
    }

    async fn configured(settings: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        let destination = TestDestination::start().await;
        let database = TestDatabase::create().await;
        let vault = TestVault::start_with(database, |config| {
            destination.allow(config);
            change(config);
        })
        .await;
        let tenant = vault.tenant_with(settings).await;
        let manager = manager(&vault, &tenant).await;
        let granted = grants(&[
            Permission::ProxyInvoke,
            Permission::TokenCreate,
            Permission::TokenRead,
        ]);
        let caller = vault.client(&tenant, granted).await;
        let private = ApplicationKind::Private;
        let granted = grants(&[Permission::TokenCreate]);
        let application = vault.holder(&tenant, private, granted).await;
        Self {
            destination,
            vault,
            tenant,
            manager,
            caller,
            application,
        }
    }

    /// A valid proxy to the destination.
    fn new_proxy(&self) -> Value {
        json!({"name": "Payments", "destination_url": self.destination.url("/v1")})
    }

    /// Creates a proxy with these attributes; returns its body.
    async fn create(&self, attributes: Value) -> Value {
        let mut new = self.new_proxy();
        let attributes = attributes.as_object().unwrap();
        new.as_object_mut().unwrap().extend(attributes.clone());
        let created = self.manager.post("/proxies", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.body
    }

    /// Creates a proxy whose transforms have the permissions of the fixture's application.
    async fn create_with_application(&self, mut attributes: Value) -> Value {
        attributes["application"] = json!({"id": self.application.application});
        self.create(attributes).await
    }

    /// Invokes a proxy with a JSON body.
    async fn invoke(&self, client: &Client, proxy: &Value, body: Value) -> TestResponse {
        let request = client
            .request(Method::POST, "/proxy/charges")
            .header("bt-proxy-key", proxy["key"].as_str().unwrap())
            .header("content-type", "application/json");
        client.send(request.body(body.to_string())).await
    }
}

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    let granted = grants(&[
        Permission::ProxyCreate,
        Permission::ProxyRead,
        Permission::ProxyUpdate,
        Permission::ProxyDelete,
        Permission::ApplicationGrant,
        Permission::ApplicationCreate,
        Permission::ApplicationRead,
        Permission::ApplicationUpdate,
        Permission::ApplicationDelete,
        Permission::TenantUpdate,
        Permission::LogRead,
    ]);
    manager_with(vault, tenant, granted).await
}

async fn manager_with(vault: &TestVault, tenant: &Tenant, granted: Grants) -> Client {
    let management = ApplicationKind::Management;
    let holder = vault.holder(tenant, management, granted).await;
    vault.client_with(Some(&holder.key))
}
