//! Admits or rejects a request: through Redis, or by this node alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cloakroom_platform::telemetry::catalog;
use tokio::time::Instant;

use super::RateLimits;
use super::counter::{Counter, CounterContext, Outcome, counters_of};
use super::decision::Decision;
use super::request_info::RequestInfo;
use super::reserves::Group;

/// Counts a request, unless one of its counters rejects it. `None` if no limit applies.
pub async fn admit(limits: &RateLimits, info: &RequestInfo<'_>) -> Option<Decision> {
    let counters = counters(limits, info);
    if counters.is_empty() {
        return None;
    }
    let started_at = Instant::now();
    let rejections = &limits.rejections;
    let outcomes = match rejections.find(&counters, started_at).await {
        Some(outcomes) => outcomes,
        None => count(limits, &counters, started_at).await,
    };
    count_rejection(Decision::new(&counters, &outcomes))
}

/// Rejects a request without counting it, if one of its counters is known to reject.
pub async fn reject_known(limits: &RateLimits, info: &RequestInfo<'_>) -> Option<Decision> {
    let (rejections, now) = (&limits.rejections, Instant::now());
    if !rejections.is_any_active(now) {
        return None;
    }
    let counters = counters(limits, info);
    count_rejection(Decision::new(
        &counters,
        &rejections.find(&counters, now).await?,
    ))
}

fn counters(limits: &RateLimits, info: &RequestInfo<'_>) -> Arc<[Counter]> {
    let Some(table) = &limits.table else {
        return Arc::default();
    };
    let context = CounterContext {
        environment: limits.vault.keys.environment(),
        exempt_addresses: &limits.vault.config.limits.exempt_addresses,
    };
    counters_of(table, info, &context)
}

async fn count(
    limits: &RateLimits,
    counters: &Arc<[Counter]>,
    started_at: Instant,
) -> Vec<Outcome> {
    if let Some(redis_counter) = &limits.redis_counter {
        let group = Group(counters.clone());
        if let Some(outcomes) = limits.reserves.take(&group, started_at) {
            return outcomes;
        }
        if let Ok(Some(outcomes)) = redis_counter.process(group).await {
            limits.mark_shared();
            limits
                .rejections
                .insert(counters, &outcomes, started_at)
                .await;
            return outcomes;
        }
        limits.mark_local();
    }
    let nodes = limits.nodes.load(Ordering::Relaxed);
    let outcomes = limits.windows.admit(counters, nodes, Instant::now());
    limits
        .rejections
        .insert(counters, &outcomes, started_at)
        .await;
    outcomes
}

fn count_rejection(decision: Option<Decision>) -> Option<Decision> {
    if let Some(decision) = decision.as_ref().filter(|decision| decision.is_rejected) {
        let limit = decision.name.clone();
        catalog::RATE_LIMITED.with([limit]).increment(1);
    }
    decision
}
