//! Nodes with limits of the test's own, and the Redis that they share.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::config::{Config, Secret};
use tempfile::TempDir;

use crate::support::{Client, TestDatabase, TestRedis, TestVault, grants};

/// A vault whose limits are the ones of a test.
pub(super) struct Site {
    pub(super) first: TestVault,
    pub(super) tenant: Tenant,
    pub(super) redis: Option<TestRedis>,
    _folder: TempDir,
}

/// One limit as the table has it.
pub(super) fn limit(name: &str, lines: &str) -> String {
    format!(
        "[[limit]]\nname = \"{name}\"\n{}\n",
        lines.replace("; ", "\n")
    )
}

impl Site {
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
        let first = TestVault::start_with(TestDatabase::create().await, |config| {
            config.limits.enabled = true;
            // Connections wait for requests that are still to be sent.
            config.http.header_timeout = Duration::from_secs(60);
            config.limits.file = Some(file);
            config.redis.url = redis.as_ref().map(|redis| Secret::new(redis.url()));
            change(config);
        })
        .await;
        let tenant = first.tenant().await;
        Self {
            first,
            tenant,
            redis,
            _folder: folder,
        }
    }

    pub(super) fn redis(&self) -> &TestRedis {
        self.redis.as_ref().unwrap()
    }

    /// A client with a key of its own.
    pub(super) async fn client(&self, kind: ApplicationKind) -> Client {
        let some = match kind {
            ApplicationKind::Private | ApplicationKind::Public => Permission::TokenCreate,
            ApplicationKind::Management => Permission::TenantRead,
        };
        let holder = self.first.holder(&self.tenant, kind, grants(&[some])).await;
        self.first.client_with(Some(&holder.key))
    }
}
