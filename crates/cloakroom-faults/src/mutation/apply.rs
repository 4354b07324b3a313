//! Applies and reverts mutations.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use anyhow::{Context, Result};
use http::Method;
use serde_json::json;
use uuid::Uuid;

use super::Mutation;
use crate::clients::Workload;
use crate::clients::api::ApiRequest;
use crate::clients::client::Client;
use crate::cluster::{Cluster, STANDBY_PORT};
use crate::history::{State, data};

/// Restores deleted token intents with a trigger.
const RESTORE_INTENTS_TRIGGER: &str = "
    create function restore_intent() returns trigger language plpgsql security definer as
    $$ begin insert into token_intent select old.*; return null; end $$;
    create trigger restore_intents after delete on token_intent
    for each row execute function restore_intent()";
const DROP_INTENTS_TRIGGER: &str = "drop function restore_intent() cascade";

/// Drops every second delivery with a trigger.
const DROP_DELIVERIES_TRIGGER: &str = "
    create function drop_delivery() returns trigger language plpgsql as
    $$ begin return case when random() < 0.5 then null else new end; end $$;
    create trigger drop_deliveries before insert on webhook_delivery
    for each row execute function drop_delivery()";
const KEEP_DELIVERIES_TRIGGER: &str = "drop function drop_delivery() cascade";

/// A port without a listener.
const CLOSED_PORT: u16 = 5999;

impl Mutation {
    /// Patroni settings that apply and revert the mutation.
    fn settings(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::NonStrictReplication => (
                &["synchronous_mode_strict=false"],
                &["synchronous_mode_strict=true"],
            ),
            Self::SlowFailover => (
                &["ttl=60", "loop_wait=10", "retry_timeout=20"],
                &["ttl=15", "loop_wait=3", "retry_timeout=5"],
            ),
            Self::AsyncCommit => (
                &[
                    "synchronous_mode=false",
                    "synchronous_mode_strict=false",
                    "postgresql.parameters.synchronous_commit=off",
                    "postgresql.parameters.wal_writer_delay=10s",
                    "postgresql.parameters.wal_writer_flush_after=1GB",
                ],
                &[
                    "synchronous_mode=true",
                    "synchronous_mode_strict=true",
                    "postgresql.parameters.synchronous_commit=on",
                    "postgresql.parameters.wal_writer_delay=200ms",
                    "postgresql.parameters.wal_writer_flush_after=1MB",
                ],
            ),
            _ => (&[], &[]),
        }
    }

    /// Changes the cluster before the workload starts.
    pub(crate) async fn prepare(self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::UnreachableStandby => return route_to_standby(cluster, CLOSED_PORT).await,
            Self::ReusableIntents => return run_sql(cluster, RESTORE_INTENTS_TRIGGER).await,
            Self::DroppedDeliveries => return run_sql(cluster, DROP_DELIVERIES_TRIGGER).await,
            _ => {}
        }
        self.configure(cluster, self.settings().0, self != Self::AsyncCommit)
            .await
    }

    pub(crate) async fn undo(self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::UnreachableStandby => return route_to_standby(cluster, STANDBY_PORT).await,
            Self::ReusableIntents => return run_sql(cluster, DROP_INTENTS_TRIGGER).await,
            Self::DroppedDeliveries => return run_sql(cluster, KEEP_DELIVERIES_TRIGGER).await,
            _ => {}
        }
        self.configure(cluster, self.settings().1, true).await
    }

    async fn configure(
        self,
        cluster: &Cluster,
        settings: &[&str],
        synchronous: bool,
    ) -> Result<()> {
        if settings.is_empty() {
            return Ok(());
        }
        cluster.is_synchronous.store(synchronous, Ordering::Relaxed);
        cluster
            .wait_for_primary()
            .await?
            .configure(settings)
            .await?;
        // Patroni reads its settings once per loop.
        tokio::time::sleep(std::time::Duration::from_secs(12)).await;
        let limit = std::time::Duration::from_secs(60);
        cluster.wait_until_healthy(limit).await
    }

    /// Tampers with data after the workload and before the check.
    pub(crate) async fn tamper(self, cluster: &Cluster, workload: &Arc<Workload>) -> Result<()> {
        let primary = cluster.wait_for_primary().await?;
        let sql = async |statement: &str| primary.sql("cloakroom", statement).await;
        match self {
            Self::UnrecordedDelete => {
                let (_, id) = certain_token(workload)?;
                sql(&format!("delete from token where token_id = '{id}'")).await?;
            }
            Self::UnrecordedUpdate => update_outside_history(workload).await?,
            Self::ResurrectedToken => {
                let (number, id) = certain_token(workload)?;
                sql(&format!(
                    "create table saved_token as select * from token where token_id = '{id}'"
                ))
                .await?;
                Client {
                    workload: workload.clone(),
                }
                .delete(number)
                .await;
                sql("insert into token select * from saved_token; drop table saved_token").await?;
            }
            Self::DeletedAuditEntry => {
                let like = format!("part-{}-read-%", workload.part);
                sql(&format!(
                    "delete from log where trace_id = (select trace_id from log
                     where outcome = 4 and trace_id like '{like}' limit 1)"
                ))
                .await?;
            }
            Self::DeletedProxyEntry => {
                let trace = proxied_request(workload)?;
                sql(&format!("delete from log where trace_id = '{trace}'")).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The trace id of a proxied request that succeeded.
fn proxied_request(workload: &Workload) -> Result<String> {
    let proxied = workload.outbound.proxied.lock();
    let proxied = proxied.unwrap_or_else(PoisonError::into_inner);
    let first = proxied.first().cloned();
    first.context("there is no proxied request to tamper with")
}

async fn run_sql(cluster: &Cluster, statements: &str) -> Result<()> {
    let primary = cluster.wait_for_primary().await?;
    primary.sql("cloakroom", statements).await?;
    Ok(())
}

/// Restarts the nodes, which read the address of the standby at startup.
async fn route_to_standby(cluster: &Cluster, port: u16) -> Result<()> {
    for node in &cluster.nodes {
        cluster.route_to_standby(node, port)?;
        node.stop().await?;
        node.start(&cluster.binary)?;
        node.wait_until_ready().await?;
    }
    Ok(())
}

/// A token that exists without an indeterminate write.
fn certain_token(workload: &Workload) -> Result<(usize, Uuid)> {
    let entries = workload.history.entries();
    let mut own = entries.iter().enumerate();
    own.find_map(|(number, entry)| {
        let is_certain = entry.part == workload.part
            && entry.possible.is_none()
            && matches!(entry.acknowledged, State::Present(_));
        is_certain.then_some((number, entry.id?))
    })
    .context("there is no token to tamper with")
}

async fn update_outside_history(workload: &Workload) -> Result<()> {
    let (number, id) = certain_token(workload)?;
    let request = ApiRequest {
        method: Method::PATCH,
        path: &format!("/tokens/{id}"),
        key: &workload.keys.write,
        body: Some(json!({"data": data(number, 4711)})),
        idempotency_key: None,
        trace: None,
        headers: &[],
    };
    workload.api.send(request).await.map(drop)
}
