//! A vault that runs for one test.

use std::net::SocketAddr;
use std::time::Duration;

use cloakroom::access::{
    AccessRule, ApplicationKind, Container, Grants, Permission, Scope, Tenant, TenantKind,
    TenantSettings, Transform,
};
use cloakroom::applications::{self, NewApplication};
use cloakroom::config::{Config, Secret};
use cloakroom::idempotency::Reply;
use cloakroom::server::Server;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Vault, keys, router};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{Client, TestDatabase};

/// A running vault with its own database and root key.
pub(crate) struct TestVault {
    pub(crate) vault: Vault,
    pub(crate) database: TestDatabase,
    pub(crate) base_url: String,
    folder: TempDir,
    serving: JoinHandle<()>,
}

/// An application with a key.
pub(crate) struct Holder {
    pub(crate) application: Uuid,
    pub(crate) key_id: Uuid,
    pub(crate) key: String,
}

impl TestVault {
    pub(crate) async fn start() -> Self {
        Self::start_with(TestDatabase::create().await, |_| {}).await
    }

    /// Starts with much time for the database: for tests that ask for a lot at once, which takes long
    /// on a machine that has other things to do.
    pub(crate) async fn start_patient() -> Self {
        Self::start_with(TestDatabase::create().await, |config| {
            let minute = Duration::from_secs(60);
            config.database.connect_timeout = minute;
            config.database.acquire_timeout = minute;
            config.database.read_deadline = minute;
            config.database.write_deadline = minute;
        })
        .await
    }

    /// Starts with a changed configuration.
    pub(crate) async fn start_with(
        database: TestDatabase,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        keys::create_file(&folder.path().join("root.key")).unwrap();
        let mut config = configuration(&folder, &database);
        change(&mut config);
        let vault = Vault::open_or_initialize(config).await.unwrap();
        let (base_url, serving) = serve(&vault).await;
        Self {
            vault,
            database,
            base_url,
            folder,
            serving,
        }
    }

    /// A configuration for a second node on the same database and root key.
    pub(crate) fn configuration(&self) -> Config {
        configuration(&self.folder, &self.database)
    }

    pub(crate) async fn tenant(&self) -> Tenant {
        self.tenant_with(&[]).await
    }

    /// A tenant with some settings changed.
    pub(crate) async fn tenant_with(&self, changed: &[(&str, &str)]) -> Tenant {
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

    /// An application of this kind with these grants, and its key.
    pub(crate) async fn holder(
        &self,
        tenant: &Tenant,
        kind: ApplicationKind,
        grants: Grants,
    ) -> Holder {
        let new = NewApplication {
            name: Some(format!("A {kind} application")),
            kind: Some(kind.name().to_owned()),
            grants: grants.into(),
            create_key: true,
            expires_at: None,
        };
        let created = applications::create(&self.vault, tenant.into(), new, &Reply::none())
            .await
            .unwrap();
        let key = created.key.unwrap();
        Holder {
            application: created.application.id,
            key_id: key.id,
            key: key.key.expose().to_owned(),
        }
    }

    /// A client for a new private application with these grants.
    pub(crate) async fn client(&self, tenant: &Tenant, grants: Grants) -> Client {
        let holder = self.holder(tenant, ApplicationKind::Private, grants).await;
        self.client_with(Some(&holder.key))
    }

    pub(crate) fn client_with(&self, key: Option<&str>) -> Client {
        Client::new(&self.base_url, key)
    }

    /// A client that may do everything with tokens and sees their data.
    pub(crate) async fn revealing_client(&self) -> Client {
        let tenant = self.tenant().await;
        self.client(&tenant, everything(Transform::Reveal)).await
    }

    /// Another node of the same vault, with the same configuration, on a port of its own.
    pub(crate) async fn second_node(&self) -> Self {
        self.node_with(|_| {}).await
    }

    /// The same vault as a dump has it, on a database of its own.
    pub(crate) async fn restored(&self, dump: &str) -> Self {
        let database = TestDatabase::create_empty().await;
        database.restore(dump);
        self.node_with(|config| config.database.url = Some(Secret::new(database.url)))
            .await
    }

    /// Another node with a configuration that differs.
    pub(crate) async fn node_with(&self, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = self.vault.config.clone();
        config.http.listen.set_port(0);
        change(&mut config);
        let url = config.database.require_url().unwrap().reveal().to_owned();
        let vault = Vault::open(config).await.unwrap();
        let (base_url, serving) = serve(&vault).await;
        Self {
            vault,
            database: TestDatabase { url },
            base_url,
            folder: tempfile::tempdir().unwrap(),
            serving,
        }
    }
}

impl Drop for TestVault {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn configuration(folder: &TempDir, database: &TestDatabase) -> Config {
    let mut config = Config::default();
    config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.database.url = Some(Secret::new(&database.url));
    config.database.max_connections = 8;
    config.root_key.file = Some(folder.path().join("root.key"));
    // Most tests ask for more than a test tenant may; those about limits switch them on.
    config.limits.enabled = false;
    config.quotas.threeds = true;
    config
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test ends the server when it drops the vault"
)]
async fn serve(vault: &Vault) -> (String, JoinHandle<()>) {
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
pub(crate) fn everything(transform: Transform) -> Grants {
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

/// Plain permissions.
pub(crate) fn grants(permissions: &[Permission]) -> Grants {
    Grants {
        permissions: permissions.iter().copied().collect(),
        rules: Vec::new(),
    }
}

pub(crate) fn rule(
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
