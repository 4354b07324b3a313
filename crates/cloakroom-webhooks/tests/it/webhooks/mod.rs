//! Webhooks: endpoints, events, deliveries and signatures.

mod deliveries;
mod endpoint;
mod events;
mod faults;
mod load;
mod order;
mod resource;
mod signatures;

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::config::Config;
use cloakroom::webhooks::deliveries as delivery_jobs;
use cloakroom_testkit::{Client, TestDatabase, TestVault, everything, grants};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;

use self::endpoint::Endpoint;

const MANAGEMENT: [Permission; 9] = [
    Permission::WebhookRead,
    Permission::WebhookCreate,
    Permission::WebhookUpdate,
    Permission::WebhookDelete,
    Permission::ApplicationRead,
    Permission::ApplicationCreate,
    Permission::ApplicationUpdate,
    Permission::ApplicationDelete,
    Permission::TenantUpdate,
];

/// A vault that may send events to an endpoint on this machine.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    /// Manages webhooks.
    manager: Client,
    /// Has all token permissions.
    client: Client,
    endpoint: Endpoint,
    jobs: JoinSet<()>,
}

impl Fixture {
    /// Starts without the delivery job.
    async fn start() -> Self {
        let endpoint = Endpoint::start().await;
        let configure = |config: &mut Config| endpoint.configure(config);
        let vault = TestVault::start_with(TestDatabase::create().await, configure).await;
        let tenant = vault.tenant().await;
        let manager = vault
            .holder(&tenant, ApplicationKind::Management, grants(&MANAGEMENT))
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        Self {
            manager: vault.client_with(Some(&manager.key)),
            vault,
            tenant,
            client,
            endpoint,
            jobs: JoinSet::new(),
        }
    }

    /// Starts a delivery job. Several compete like those of several nodes.
    fn deliver(&mut self) {
        self.jobs
            .spawn(delivery_jobs::run(self.vault.vault.webhooks.clone()));
    }

    /// Creates a webhook for these events and returns its id.
    async fn subscribe(&self, events: &[&str]) -> String {
        let created = self.manager.post("/webhooks", self.webhook(events)).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    fn webhook(&self, events: &[&str]) -> Value {
        json!({"name": "Ledger", "url": self.endpoint.url(), "events": events})
    }

    async fn create_token(&self) -> String {
        let created = self
            .client
            .post("/tokens", json!({"type": "token", "data": "Sample"}))
            .await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    /// Runs SQL outside the vault.
    async fn sql(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> u64 {
        let connection = self.vault.database.connect().await;
        connection.execute(sql, params).await.unwrap()
    }

    /// The stored events, oldest first: type and payload.
    async fn stored(&self) -> Vec<(String, Value)> {
        let connection = self.vault.database.connect().await;
        let sql = "select event_type, payload from webhook_delivery order by recorded_at, event_id";
        let rows = connection.query(sql, &[]).await.unwrap();
        rows.iter()
            .map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap()))
            .collect()
    }

    /// The types of the stored events, oldest first.
    async fn stored_types(&self) -> Vec<String> {
        self.stored()
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    /// Updates of deliveries until now. The statistics are up to a second late.
    async fn updates(&self) -> i64 {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let connection = self.vault.database.connect().await;
        let sql = "select n_tup_upd from pg_stat_user_tables where relname = 'webhook_delivery'";
        connection.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Makes every pending delivery due, as if its delay had passed.
    async fn skip_delays(&self) -> u64 {
        let sql = "update webhook_delivery set next_at = now() where state = 1 and next_at > now()";
        self.sql(sql, &[]).await
    }

    /// The deliveries of a webhook in the log, newest first.
    async fn log(&self, webhook: &str) -> Vec<Value> {
        let listed = self
            .manager
            .get(&format!("/webhooks/{webhook}/deliveries"))
            .await;
        listed.items().to_vec()
    }

    /// Waits until the first delivery in the log satisfies `condition`.
    async fn wait_for_log(&self, webhook: &str, condition: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..200 {
            if let Some(first) = self.log(webhook).await.first()
                && condition(first)
            {
                return first.clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the log does not change: {:?}", self.log(webhook).await)
    }
}
