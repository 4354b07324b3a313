//! A vault that runs for one test.

use std::net::SocketAddr;
use std::time::Duration;

use cloakroom::access::{
    ALL_PERMISSIONS, AccessRule, ApplicationKind, Container, Grants, Permission, Scope, Tenant,
    TenantKind, TenantSettings, Transform,
};
use cloakroom::applications::{self, NewApplication};
use cloakroom::config::{Config, Secret};
use cloakroom::idempotency::ResponseTemplate;
use cloakroom::server::Server;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Node, keys, router};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{Client, TestDatabase};

/// A running vault with its own database and root key.
pub struct TestVault {
    pub vault: Node,
    pub database: TestDatabase,
    pub base_url: String,
    folder: TempDir,
    server_task: JoinHandle<()>,
}

/// An application and its key.
pub struct TestApplication {
    pub application: Uuid,
    pub key_id: Uuid,
    pub key: String,
}

impl TestVault {
    pub async fn start() -> Self {
        Self::start_with(TestDatabase::create().await, |_| {}).await
    }

    /// Starts with long database timeouts, for tests that send many requests at once on a busy machine.
    pub async fn start_with_long_timeouts() -> Self {
        Self::start_with(TestDatabase::create().await, use_long_timeouts).await
    }

    /// Starts with immediate tenant deletion: one request deletes a tenant, without a waiting period.
    pub async fn start_with_immediate_deletion() -> Self {
        Self::start_with(TestDatabase::create().await, |config| {
            config.tenants.immediate_deletion = true;
        })
        .await
    }

    /// Starts with a modified configuration.
    pub async fn start_with(database: TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        keys::create_file(&folder.path().join("root.key")).unwrap();
        let mut config = configuration(&folder, &database);
        change(&mut config);
        let vault = Node::open_or_initialize(config).await.unwrap();
        let (base_url, server_task) = serve(&vault).await;
        Self {
            vault,
            database,
            base_url,
            folder,
            server_task,
        }
    }

    /// The configuration of a second node with the same database and root key.
    pub fn configuration(&self) -> Config {
        configuration(&self.folder, &self.database)
    }

    pub async fn tenant(&self) -> Tenant {
        self.tenant_with(&[]).await
    }

    /// Creates a tenant with modified settings.
    pub async fn tenant_with(&self, changed: &[(&str, &str)]) -> Tenant {
        let mut settings = TenantSettings::default();
        for (name, text) in changed {
            settings.set(name, text).unwrap();
        }
        let new = NewTenant {
            name: "A tenant".into(),
            kind: TenantKind::Test,
            settings,
        };
        tenants::create(&self.vault, new).await.unwrap()
    }

    /// Creates an application with these grants, and a key for it.
    pub async fn holder(
        &self,
        tenant: &Tenant,
        kind: ApplicationKind,
        grants: Grants,
    ) -> TestApplication {
        let new = NewApplication {
            name: Some(format!("A {kind} application")),
            kind: Some(kind.name().to_owned()),
            grants: grants.into(),
            create_key: true,
            expires_at: None,
        };
        let created =
            applications::create(&self.vault, tenant.into(), new, &ResponseTemplate::none())
                .await
                .unwrap();
        let key = created.key.unwrap();
        TestApplication {
            application: created.application.id,
            key_id: key.id,
            key: key.key.expose().to_owned(),
        }
    }

    /// A client for a new private application with these grants.
    pub async fn client(&self, tenant: &Tenant, grants: Grants) -> Client {
        let holder = self.holder(tenant, ApplicationKind::Private, grants).await;
        self.client_with(Some(&holder.key))
    }

    pub fn client_with(&self, key: Option<&str>) -> Client {
        Client::new(&self.base_url, key)
    }

    /// A client of a new tenant with all token permissions and the `reveal` transform.
    pub async fn revealing_client(&self) -> Client {
        let tenant = self.tenant().await;
        self.client(&tenant, everything(Transform::Reveal)).await
    }

    /// Starts another node of the same vault with the same configuration, on its own port.
    pub async fn second_node(&self) -> Self {
        self.node_with(|_| {}).await
    }

    /// Starts a node on a new database, restored from a dump.
    pub async fn restored(&self, dump: &str) -> Self {
        let database = TestDatabase::create_empty().await;
        database.restore(dump);
        self.node_with(|config| config.database.url = Some(Secret::new(database.url)))
            .await
    }

    /// Starts another node with a modified configuration.
    pub async fn node_with(&self, change: impl FnOnce(&mut Config)) -> Self {
        self.try_node_with(change).await.unwrap()
    }

    /// Starts another node, or returns why it does not start.
    pub async fn try_node_with(
        &self,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, cloakroom::node::Error> {
        let mut config = self.vault.config.clone();
        config.http.listen.set_port(0);
        change(&mut config);
        let url = config.database.require_url().unwrap().reveal().to_owned();
        let vault = Node::open(config).await?;
        let (base_url, server_task) = serve(&vault).await;
        Ok(Self {
            vault,
            database: TestDatabase { url },
            base_url,
            folder: tempfile::tempdir().unwrap(),
            server_task,
        })
    }
}

/// Sets long database timeouts.
pub fn use_long_timeouts(config: &mut Config) {
    let minute = Duration::from_secs(60);
    config.database.connect_timeout = minute;
    config.database.acquire_timeout = minute;
    config.database.read_deadline = minute;
    config.database.write_deadline = minute;
}

impl Drop for TestVault {
    fn drop(&mut self) {
        self.server_task.abort();
    }
}

fn configuration(folder: &TempDir, database: &TestDatabase) -> Config {
    let mut config = Config::default();
    config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    // All clients of a test have the same address.
    config.http.max_connections_per_address = Some(config.http.max_connections);
    config.database.url = Some(Secret::new(&database.url));
    config.database.max_connections = 8;
    config.root_key.file = Some(folder.path().join("root.key"));
    // Most tests exceed the limits of a test tenant; tests of limits enable them.
    config.limits.enabled = false;
    config.quotas.threeds = true;
    config
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server task ends when the test drops the vault"
)]
async fn serve(vault: &Node) -> (String, JoinHandle<()>) {
    let server = Server::bind(&vault.config.http).await.unwrap();
    let prefix = vault.config.http.prefix();
    let base_url = format!("http://{}{prefix}", server.local_addr());
    let app = router::api(vault.clone());
    (
        base_url,
        tokio::spawn(server.run(app, std::future::pending())),
    )
}

/// Every token permission in every container.
pub fn everything(transform: Transform) -> Grants {
    use Permission::{TokenCreate, TokenDelete, TokenRead, TokenSearch, TokenUpdate};
    Grants {
        rules: vec![rule(
            1,
            "/",
            transform,
            &[
                TokenCreate,
                TokenRead,
                TokenUpdate,
                TokenSearch,
                TokenDelete,
            ],
        )],
        ..grants(&[])
    }
}

/// Permissions without access rules.
pub fn grants(permissions: &[Permission]) -> Grants {
    Grants {
        permissions: permissions.iter().copied().collect(),
        rules: Vec::new(),
    }
}

pub fn rule(
    priority: u32,
    container: &str,
    transform: Transform,
    permissions: &[Permission],
) -> AccessRule {
    AccessRule {
        description: "A rule".into(),
        priority,
        scope: Scope::Container(Container::parse(container).unwrap()),
        transform,
        permissions: permissions.iter().copied().collect(),
    }
}

/// Every permission that an application of this type can hold.
pub fn held_by(kind: ApplicationKind) -> impl Iterator<Item = Permission> {
    let all = ALL_PERMISSIONS.iter().copied();
    all.filter(move |permission| permission.fits(kind))
}
