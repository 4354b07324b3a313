//! Ways to break the promise on purpose: the checker must notice each of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use http::Method;
use serde_json::json;
use uuid::Uuid;

use crate::clients::Load;
use crate::clients::api::Question;
use crate::clients::client::Client;
use crate::clients::tally::Rule;
use crate::cluster::{Cluster, STANDBY_PORT};
use crate::ledger::{State, data};

/// Puts back every intent that is taken away, and stops doing so.
const KEEP_INTENTS: &str = "
    create function keep_intent() returns trigger language plpgsql security definer as
    $$ begin insert into token_intent select old.*; return null; end $$;
    create trigger keep_intents after delete on token_intent
    for each row execute function keep_intent()";
const FORGET_INTENTS: &str = "drop function keep_intent() cascade";

/// Where nobody listens.
const NOBODYS_PORT: u16 = 5999;

/// One thing that is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    FalseAcknowledgement,
    RetriesWithoutKey,
    DeletedBehind,
    ChangedBehind,
    BroughtBack,
    RecordRemoved,
    EarlyExpiry,
    CarelessUpgrade,
    LaxStandby,
    SlowFailover,
    AsyncCommit,
    StandbyUnknown,
    ErasuresForgotten,
    IntentsKept,
}

/// What is done wrong, during which fault, and which rule must notice.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) sabotage: Sabotage,
    pub(crate) fault: &'static str,
    pub(crate) rule: Rule,
}

const fn row(
    (name, what): (&'static str, &'static str),
    sabotage: Sabotage,
    fault: &'static str,
    rule: Rule,
) -> Row {
    Row {
        name,
        what,
        sabotage,
        fault,
        rule,
    }
}

pub(crate) const SABOTAGES: &[Row] = &[
    row(
        (
            "changed-behind",
            "a token is changed and the ledger is not told",
        ),
        Sabotage::ChangedBehind,
        "calm",
        Rule::Wrong,
    ),
    row(
        ("deleted-behind", "a token is deleted by SQL"),
        Sabotage::DeletedBehind,
        "calm",
        Rule::Lost,
    ),
    row(
        ("brought-back", "a deleted token is brought back by SQL"),
        Sabotage::BroughtBack,
        "calm",
        Rule::Resurrected,
    ),
    row(
        (
            "record-removed",
            "the record of a revealed read is removed by SQL",
        ),
        Sabotage::RecordRemoved,
        "calm",
        Rule::Unrecorded,
    ),
    row(
        ("intents-kept", "an intent that was used is put back by SQL"),
        Sabotage::IntentsKept,
        "calm",
        Rule::Doubled,
    ),
    row(
        (
            "early-expiry",
            "the checker takes tokens for expired that are not",
        ),
        Sabotage::EarlyExpiry,
        "clock-jump",
        Rule::Expired,
    ),
    row(
        ("careless-upgrade", "nodes are killed instead of drained"),
        Sabotage::CarelessUpgrade,
        "rolling-upgrade",
        Rule::Failed,
    ),
    row(
        (
            "false-acknowledgement",
            "clients write down acknowledgements that they did not get",
        ),
        Sabotage::FalseAcknowledgement,
        "primary-kill",
        Rule::Lost,
    ),
    row(
        (
            "retries-without-key",
            "clients repeat what they do not know, without idempotency keys",
        ),
        Sabotage::RetriesWithoutKey,
        "standby-loss",
        Rule::Doubled,
    ),
    row(
        (
            "lax-standby",
            "the primary goes on alone when its standbys are gone",
        ),
        Sabotage::LaxStandby,
        "standby-loss",
        Rule::Unconfirmed,
    ),
    row(
        (
            "slow-failover",
            "a dead primary's key in etcd lasts a minute",
        ),
        Sabotage::SlowFailover,
        "machine-death",
        Rule::Unavailable,
    ),
    row(
        ("standby-unknown", "nodes do not find the standby"),
        Sabotage::StandbyUnknown,
        "machine-death",
        Rule::Unavailable,
    ),
    row(
        ("async-commit", "commits wait for neither disk nor standby"),
        Sabotage::AsyncCommit,
        "power-cut",
        Rule::Lost,
    ),
    row(
        ("erasures-forgotten", "a restored backup is used as it is"),
        Sabotage::ErasuresForgotten,
        "old-backup",
        Rule::Resurrected,
    ),
];

pub(crate) fn find(name: &str) -> Option<&'static Row> {
    SABOTAGES.iter().find(|row| row.name == name)
}

impl Sabotage {
    /// Settings of the cluster that make it so, and those that make it right again.
    fn settings(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::LaxStandby => (
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

    /// Sets the cluster up wrongly, before there is any load.
    pub(crate) async fn prepare(self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::StandbyUnknown => return route_to_standby(cluster, NOBODYS_PORT).await,
            Self::IntentsKept => return change_schema(cluster, KEEP_INTENTS).await,
            _ => {}
        }
        self.configure(cluster, self.settings().0, self != Self::AsyncCommit)
            .await
    }

    pub(crate) async fn undo(self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::StandbyUnknown => return route_to_standby(cluster, STANDBY_PORT).await,
            Self::IntentsKept => return change_schema(cluster, FORGET_INTENTS).await,
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
        // Every machine looks at its settings once in a round.
        tokio::time::sleep(std::time::Duration::from_secs(12)).await;
        let limit = std::time::Duration::from_secs(60);
        cluster.wait_until_settled(limit).await
    }

    /// Does wrong what is done behind everybody's back, after the load and before the check.
    pub(crate) async fn interfere(self, cluster: &Cluster, load: &Arc<Load>) -> Result<()> {
        let primary = cluster.wait_for_primary().await?;
        let sql = async |statement: &str| primary.sql("cloakroom", statement).await;
        match self {
            Self::DeletedBehind => {
                let (_, id) = some_token(load)?;
                sql(&format!("delete from token where token_id = '{id}'")).await?;
            }
            Self::ChangedBehind => change_behind(load).await?,
            Self::BroughtBack => {
                let (number, id) = some_token(load)?;
                sql(&format!(
                    "create table kept as select * from token where token_id = '{id}'"
                ))
                .await?;
                Client { load: load.clone() }.delete(number).await;
                sql("insert into token select * from kept; drop table kept").await?;
            }
            Self::RecordRemoved => {
                let like = format!("part-{}-read-%", load.part);
                sql(&format!(
                    "delete from log where trace_id = (select trace_id from log
                     where outcome = 4 and trace_id like '{like}' limit 1)"
                ))
                .await?;
            }
            _ => {}
        }
        Ok(())
    }
}

async fn change_schema(cluster: &Cluster, statements: &str) -> Result<()> {
    let primary = cluster.wait_for_primary().await?;
    primary.sql("cloakroom", statements).await?;
    Ok(())
}

/// Nodes read at their start where the standby is.
async fn route_to_standby(cluster: &Cluster, port: u16) -> Result<()> {
    for node in &cluster.nodes {
        cluster.route_to_standby(node, port)?;
        node.stop().await?;
        node.start(&cluster.binary)?;
        node.wait_until_ready().await?;
    }
    Ok(())
}

/// A token that is there without any doubt.
fn some_token(load: &Load) -> Result<(usize, Uuid)> {
    let entries = load.ledger.entries();
    let mut own = entries.iter().enumerate();
    own.find_map(|(number, entry)| {
        let is_certain = entry.part == load.part
            && entry.possible.is_none()
            && matches!(entry.acknowledged, State::Present(_));
        is_certain.then_some((number, entry.id?))
    })
    .context("no token to sabotage")
}

async fn change_behind(load: &Load) -> Result<()> {
    let (number, id) = some_token(load)?;
    let question = Question {
        method: Method::PATCH,
        path: &format!("/tokens/{id}"),
        key: &load.keys.writing,
        body: Some(json!({"data": data(number, 4711)})),
        idempotency_key: None,
        trace: None,
    };
    load.api.ask(question).await.map(drop)
}
