//! A deployment with custom limits, and the Redis that its nodes share.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::config::{Config, Secret};
use cloakroom_testkit::{Client, TestDatabase, TestRedis, TestVault, grants};
use tempfile::TempDir;

/// A node with the limits of a test.
pub(super) struct Deployment {
    pub(super) node: TestVault,
    pub(super) tenant: Tenant,
    pub(super) redis: Option<TestRedis>,
    _folder: TempDir,
}

/// One entry of a limits file.
pub(super) fn limit(name: &str, lines: &str) -> String {
    format!(
        "[[limit]]\nname = \"{name}\"\n{}\n",
        lines.replace("; ", "\n")
    )
}

impl Deployment {
    /// A node that shares its counters through Redis.
    pub(super) async fn with_redis(table: &str) -> Self {
        Self::start(table, Some(TestRedis::start(&[]).await), |_| {}).await
    }

    pub(super) async fn start(
        table: &str,
        redis: Option<TestRedis>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("limits.toml");
        std::fs::write(&file, table).unwrap();
        let node = TestVault::start_with(TestDatabase::create().await, |config| {
            config.limits.enabled = true;
            // Connections stay idle until later requests of a test.
            config.http.header_timeout = Duration::from_secs(60);
            config.limits.file = Some(file);
            config.redis.url = redis.as_ref().map(|redis| Secret::new(redis.url()));
            change(config);
        })
        .await;
        let tenant = node.tenant().await;
        Self {
            node,
            tenant,
            redis,
            _folder: folder,
        }
    }

    pub(super) fn redis(&self) -> &TestRedis {
        self.redis.as_ref().unwrap()
    }

    /// A client with a new key.
    pub(super) async fn client(&self, kind: ApplicationKind) -> Client {
        let permission = match kind {
            ApplicationKind::Private | ApplicationKind::Public => Permission::TokenCreate,
            ApplicationKind::Management => Permission::TenantRead,
        };
        let holder = self
            .node
            .holder(&self.tenant, kind, grants(&[permission]))
            .await;
        self.node.client_with(Some(&holder.key))
    }
}
