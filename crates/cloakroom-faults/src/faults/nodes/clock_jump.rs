//! The clocks of nodes jump by hours: tokens expire by the database's clock all the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::clients::Load;
use crate::clients::api::{Api, Question};
use crate::clients::tally::Rule;
use crate::faults::Stage;
use crate::sabotage::Sabotage;

/// How long short-lived tokens live.
const LIFE: Duration = Duration::from_secs(10);
/// What lies between the clock of this program and the database's, which run on one machine, and a round trip.
const MARGIN: Duration = Duration::from_secs(2);

pub(in crate::faults) async fn strike(stage: &Stage, load: &Arc<Load>) -> Result<()> {
    let cluster = &stage.cluster;
    // One at a time: a node whose clock is off takes itself out of service, and is asked past the load balancer.
    for (node, jump) in cluster.nodes.iter().zip(["+3h", "-3h"]) {
        node.stop().await?;
        node.start_off(jump, &cluster.binary)?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        expire(stage, load, jump).await?;
        node.stop().await?;
        node.start(&cluster.binary)?;
        node.wait_until_ready().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

/// Makes tokens that end soon and tokens that end in an hour, and reads both on every node.
async fn expire(stage: &Stage, load: &Load, jump: &str) -> Result<()> {
    let nodes: Vec<Api> = stage
        .cluster
        .nodes
        .iter()
        .map(|node| {
            load.api
                .at(&format!("https://{}:8443", node.machine.address))
        })
        .collect();
    let (soon, later) = (
        create(stage, load, &nodes[0], LIFE).await?,
        create(stage, load, &nodes[1], Duration::from_secs(3600)).await?,
    );
    let made_at = Instant::now();
    // A checker that mistakes the expiry must find tokens that are answered after it.
    let life = match load.sabotage {
        Some(Sabotage::EarlyExpiry) => Duration::from_secs(1),
        _ => LIFE,
    };
    while made_at.elapsed() < LIFE + Duration::from_secs(4) {
        for node in &nodes {
            let age = made_at.elapsed();
            let tell = |what: &str| {
                let what = format!("with a clock at {jump}, {what} at the age of {age:?}");
                load.tally.violation(Rule::Expired, what);
            };
            match status(load, node, &soon).await {
                Some(200) if age > life + MARGIN => tell("an expired token was answered"),
                Some(404) if age + MARGIN + MARGIN < LIFE => tell("a token was gone too early"),
                _ => {}
            }
            if status(load, node, &later).await == Some(404) {
                tell("a token with an hour to live was gone");
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

async fn create(stage: &Stage, load: &Load, api: &Api, life: Duration) -> Result<String> {
    // By the database's clock, which is the one that counts.
    let statement = format!(
        "select to_char(now() at time zone 'UTC' + interval '{} s', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
        life.as_secs()
    );
    let primary = stage.cluster.wait_for_primary().await?;
    let expires_at = primary.sql("postgres", &statement).await?;
    for _ in 0..40 {
        let answered = api
            .ask(Question {
                method: Method::POST,
                path: "/tokens",
                key: &load.keys.writing,
                body: Some(json!({
                    "type": "token",
                    "data": "expires",
                    "containers": ["/expiring/"],
                    "expires_at": expires_at,
                })),
                idempotency_key: None,
                trace: None,
            })
            .await;
        if let Ok(answer) = answered
            && let Some(id) = answer.body.get("id").and_then(Value::as_str)
        {
            return Ok(id.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(anyhow::anyhow!(
        "a node whose clock is wrong creates nothing"
    ))
    .context("clock-jump")
}

async fn status(load: &Load, api: &Api, id: &str) -> Option<u16> {
    let path = format!("/tokens/{id}");
    let answered = api.ask(Question::get(&path, &load.keys.writing)).await;
    answered.ok().map(|answer| answer.status)
}
