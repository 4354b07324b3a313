//! Security codes: readable on every node during their retention, and nowhere afterwards.

mod expiry;
mod integrity;
mod nodes;
mod redis;

use std::time::{Duration, Instant};

use cloakroom::access::Tenant;
use cloakroom::admin::Readiness;
use cloakroom::config::{Config, Secret};
use cloakroom::security_codes::Retention;
use cloakroom::{Node, ids, jobs, security_codes};
use cloakroom_testkit::{TestDatabase, TestRedis, TestVault};
use tokio::task::JoinSet;
use tokio_postgres::Client;
use uuid::Uuid;

const INSERT: &str = "insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
    values ($1, $2, $3, $4, $5)";

/// A vault with a tenant, and the Redis that its nodes share, if any.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    redis: Option<TestRedis>,
    change: fn(&mut Config),
    /// For statements of other modules, and for tampering.
    database: Client,
}

impl Fixture {
    /// One node without Redis.
    async fn alone() -> Self {
        Self::start(TestDatabase::create().await, None, |_| {}).await
    }

    async fn with_redis() -> Self {
        Self::with_settings(|_| {}).await
    }

    async fn with_settings(change: fn(&mut Config)) -> Self {
        let redis = TestRedis::start(&[]).await;
        Self::start(TestDatabase::create().await, Some(redis), change).await
    }

    async fn start(
        database: TestDatabase,
        redis: Option<TestRedis>,
        change: fn(&mut Config),
    ) -> Self {
        let vault = TestVault::start_with(database, |config| {
            config.redis.url = redis.as_ref().map(|redis| Secret::new(redis.url()));
            change(config);
        })
        .await;
        Self {
            tenant: vault.tenant().await,
            database: vault.database.connect().await,
            vault,
            redis,
            change,
        }
    }

    fn redis(&self) -> &TestRedis {
        self.redis.as_ref().unwrap()
    }

    fn configuration(&self) -> Config {
        let mut config = self.vault.configuration();
        config.redis = self.vault.vault.config.redis.clone();
        (self.change)(&mut config);
        config
    }

    /// Opens another node with the same database, root key and Redis, and no cached keys.
    async fn another_node(&self) -> Node {
        Node::open(self.configuration()).await.unwrap()
    }

    /// Stores a code through a node, like the `tokens` module does.
    async fn store(&self, node: &Node, code: &str) -> Uuid {
        self.store_aged(node, code, Duration::ZERO).await
    }

    /// Stores a code as if it had been sealed some time ago.
    async fn store_aged(&self, node: &Node, code: &str, age: Duration) -> Uuid {
        let token = ids::new_uuid();
        let mut retention = retention(node).await;
        retention.from -= age;
        let codes = &node.security_codes;
        let sealed = security_codes::seal(codes, self.tenant.id, &token, code, retention);
        let sealed = sealed.await.unwrap();
        let number = self.tenant.id.number;
        self.database
            .execute(
                INSERT,
                &[
                    &number,
                    &token,
                    &sealed.key_id,
                    &sealed.sealed,
                    &sealed.until,
                ],
            )
            .await
            .unwrap();
        token
    }

    async fn read(&self, node: &Node, token: &Uuid) -> Option<String> {
        read(node, &self.tenant, token).await
    }

    async fn sql(&self, statement: &str) {
        self.database.batch_execute(statement).await.unwrap();
    }
}

/// The configured retention, from now on.
async fn retention(node: &Node) -> Retention {
    Retention {
        from: node.clock.now().await.unwrap(),
        duration: node.config.security_codes.retention,
    }
}

async fn read(node: &Node, tenant: &Tenant, token: &Uuid) -> Option<String> {
    let found = security_codes::find(&node.security_codes, tenant.id, token)
        .await
        .unwrap();
    found.map(|code| code.expose().clone())
}

/// Runs the jobs of a node until the value is dropped.
fn run_jobs(node: &Node) -> JoinSet<()> {
    jobs::start(node, &Readiness::new(jobs::CHECKS))
}

/// Waits until the condition holds.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs `count` futures concurrently.
async fn run_concurrently<T, F: Future<Output = T>>(
    count: usize,
    make: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut running: Vec<_> = (0..count).map(|n| Box::pin(make(n))).collect();
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
