//! Shifts the clocks of nodes by hours: tokens must expire by the clock of the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::clients::Workload;
use crate::clients::api::{Api, ApiRequest};
use crate::clients::stats::Invariant;
use crate::faults::Environment;
use crate::mutation::Mutation;

/// Lifetime of short-lived tokens.
const LIFETIME: Duration = Duration::from_secs(10);
/// Tolerance for a round trip and the difference between the clocks of this program and the database.
const MARGIN: Duration = Duration::from_secs(2);

pub(in crate::faults) async fn inject(
    environment: &Environment,
    workload: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    // One node at a time: a node with a wrong clock is not ready, so requests bypass the load balancer.
    for (node, jump) in cluster.nodes.iter().zip(["+3h", "-3h"]) {
        node.stop().await?;
        node.start_with_clock_offset(jump, &cluster.binary)?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        check_expiry(environment, workload, jump).await?;
        node.stop().await?;
        node.start(&cluster.binary)?;
        node.wait_until_ready().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

/// Creates tokens that expire soon and tokens that expire in an hour, and reads both from every node.
async fn check_expiry(environment: &Environment, workload: &Workload, jump: &str) -> Result<()> {
    let nodes: Vec<Api> = environment
        .cluster
        .nodes
        .iter()
        .map(|node| {
            workload
                .api
                .at(&format!("https://{}:8443", node.machine.address))
        })
        .collect();
    let (short_lived, long_lived) = (
        create(environment, workload, &nodes[0], LIFETIME).await?,
        create(environment, workload, &nodes[1], Duration::from_secs(3600)).await?,
    );
    let created_at = Instant::now();
    // With this mutation the checker assumes an earlier expiry and must report a violation.
    let lifetime = match workload.mutation {
        Some(Mutation::EarlyExpiry) => Duration::from_secs(1),
        _ => LIFETIME,
    };
    while created_at.elapsed() < LIFETIME + Duration::from_secs(4) {
        for node in &nodes {
            let age = created_at.elapsed();
            let report = |what: &str| {
                let what = format!("with a clock offset of {jump}, {what} at the age of {age:?}");
                workload.stats.violation(Invariant::Expired, what);
            };
            match status(workload, node, &short_lived).await {
                Some(200) if age > lifetime + MARGIN => report("an expired token was readable"),
                Some(404) if age + MARGIN + MARGIN < LIFETIME => {
                    report("a token expired too early")
                }
                _ => {}
            }
            if status(workload, node, &long_lived).await == Some(404) {
                report("a token with a lifetime of an hour was not found");
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

async fn create(
    environment: &Environment,
    workload: &Workload,
    api: &Api,
    lifetime: Duration,
) -> Result<String> {
    // Expiry uses the clock of the database.
    let statement = format!(
        "select to_char(now() at time zone 'UTC' + interval '{} s', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
        lifetime.as_secs()
    );
    let primary = environment.cluster.wait_for_primary().await?;
    let expires_at = primary.sql("postgres", &statement).await?;
    for _ in 0..40 {
        let result = api
            .send(ApiRequest {
                method: Method::POST,
                path: "/tokens",
                key: &workload.keys.write,
                body: Some(json!({
                    "type": "token",
                    "data": "expires",
                    "containers": ["/expiring/"],
                    "expires_at": expires_at,
                })),
                idempotency_key: None,
                trace: None,
                headers: &[],
            })
            .await;
        if let Ok(response) = result
            && let Some(id) = response.body.get("id").and_then(Value::as_str)
        {
            return Ok(id.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(anyhow::anyhow!(
        "a node with a wrong clock creates no tokens"
    ))
    .context("clock-jump")
}

async fn status(workload: &Workload, api: &Api, id: &str) -> Option<u16> {
    let path = format!("/tokens/{id}");
    let result = api.send(ApiRequest::get(&path, &workload.keys.write)).await;
    result.ok().map(|response| response.status)
}
