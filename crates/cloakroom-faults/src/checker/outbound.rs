//! Compares what the receiver got with what clients know.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::clients::Workload;
use crate::clients::stats::Invariant;
use crate::cluster::Cluster;
use crate::history::parse_data;
use crate::receiver::Receiver;

/// Longer than the lease of a killed node and the first retries of a delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(180);

/// Counts of a part of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outbound {
    /// Proxied requests that arrived.
    pub(crate) proxied: usize,
    /// Events of acknowledged writes.
    pub(crate) events: usize,
    /// Deliveries of an event beyond the first.
    pub(crate) duplicates: u64,
}

/// Checks that every event of an acknowledged write arrives, that no proxied request arrives twice, and that each has
/// an audit log entry.
pub(crate) async fn check_outbound(
    workload: &Workload,
    receiver: &Receiver,
    cluster: &Cluster,
) -> Result<Outbound> {
    let (events, duplicates) = check_events(workload, receiver).await;
    let proxied = check_proxied(workload, receiver, cluster).await?;
    Ok(Outbound {
        proxied,
        events,
        duplicates,
    })
}

async fn check_events(workload: &Workload, receiver: &Receiver) -> (usize, u64) {
    let expected = {
        let events = workload.outbound.events.lock();
        events.unwrap_or_else(PoisonError::into_inner).clone()
    };
    let missing = || {
        let received = receiver.received();
        let is_missing = |event: &&(String, _)| !received.events.contains_key(*event);
        expected.iter().filter(is_missing).count()
    };
    let started_at = Instant::now();
    while missing() > 0 && started_at.elapsed() < DELIVERY_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let received = receiver.received();
    let mut duplicates = 0;
    for event in &expected {
        let (kind, token) = event;
        let Some(deliveries) = received.events.get(event) else {
            let what = format!("{kind} of token {token} was not delivered");
            workload.stats.violation(Invariant::Lost, what);
            continue;
        };
        if deliveries.len() > 1 {
            let what = format!("{kind} of token {token} is {} events", deliveries.len());
            workload.stats.violation(Invariant::Doubled, what);
        }
        duplicates += deliveries.values().map(|count| count - 1).sum::<u64>();
    }
    (expected.len(), duplicates)
}

async fn check_proxied(
    workload: &Workload,
    receiver: &Receiver,
    cluster: &Cluster,
) -> Result<usize> {
    let recorded = super::revealing_traces(workload, cluster).await?;
    let prefix = workload.trace_prefix();
    let received = receiver.received();
    let own = received.proxied.iter();
    let own: Vec<_> = own
        .filter(|(trace, _)| trace.starts_with(&prefix))
        .collect();
    for (trace, bodies) in &own {
        let report = |invariant, what: &str| {
            let what = format!("proxied request {trace} {what}");
            workload.stats.violation(invariant, what);
        };
        if bodies.len() > 1 {
            report(Invariant::Doubled, "was sent twice");
        }
        if !recorded.contains(trace.as_str()) {
            report(Invariant::AuditError, "was sent without an audit log entry");
        }
        let data = serde_json::from_str::<String>(&bodies[0]);
        if data.ok().and_then(|data| parse_data(&data)).is_none() {
            report(Invariant::Wrong, "has data that was never written");
        }
    }
    let arrived: HashSet<&str> = own.iter().map(|(trace, _)| trace.as_str()).collect();
    let acknowledged = workload.outbound.proxied.lock();
    let acknowledged = acknowledged.unwrap_or_else(PoisonError::into_inner);
    for trace in acknowledged.iter() {
        if !arrived.contains(trace.as_str()) {
            let what = format!("proxied request {trace} succeeded but did not arrive");
            workload.stats.violation(Invariant::Lost, what);
        }
    }
    Ok(own.len())
}
