//! Admitting a request, or refusing it: through Redis, or by this node alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::asked::Asked;
use super::counter::{Counter, Outcome, Place, counters_of};
use super::reserves::Group;
use super::verdict::Verdict;
use crate::vault::Vault;

/// Counts a request, unless one of its counters refuses. Nothing if no limit concerns it.
pub(super) async fn admit(vault: &Vault, asked: &Asked<'_>) -> Option<Verdict> {
    let counters = counters(vault, asked);
    if counters.is_empty() {
        return None;
    }
    let asked_at = Instant::now();
    let refusals = &vault.rate_limits.refusals;
    let outcomes = match refusals.find(&counters, asked_at).await {
        Some(outcomes) => outcomes,
        None => count(vault, &counters, asked_at).await,
    };
    told(Verdict::new(&counters, &outcomes))
}

/// Refuses a request without counting it, if it is known to be too many.
pub(super) async fn refuse_known(vault: &Vault, asked: &Asked<'_>) -> Option<Verdict> {
    let (refusals, now) = (&vault.rate_limits.refusals, Instant::now());
    if !refusals.are_there(now) {
        return None;
    }
    let counters = counters(vault, asked);
    told(Verdict::new(
        &counters,
        &refusals.find(&counters, now).await?,
    ))
}

fn counters(vault: &Vault, asked: &Asked<'_>) -> Arc<[Counter]> {
    let Some(table) = &vault.rate_limits.table else {
        return Arc::default();
    };
    let place = Place {
        environment: vault.keys.environment(),
        exempt_addresses: &vault.config.limits.exempt_addresses,
    };
    counters_of(table, asked, &place)
}

async fn count(vault: &Vault, counters: &Arc<[Counter]>, asked_at: Instant) -> Vec<Outcome> {
    let limits = &vault.rate_limits;
    if let Some(counting) = &limits.counting {
        let group = Group(counters.clone());
        if let Some(outcomes) = limits.reserves.take(&group, asked_at) {
            return outcomes;
        }
        if let Ok(Some(outcomes)) = counting.join(group).await {
            limits.note_shared();
            limits
                .refusals
                .remember(counters, &outcomes, asked_at)
                .await;
            return outcomes;
        }
        limits.note_alone();
    }
    let nodes = limits.nodes.load(Ordering::Relaxed);
    let outcomes = limits.windows.admit(counters, nodes, Instant::now());
    limits
        .refusals
        .remember(counters, &outcomes, asked_at)
        .await;
    outcomes
}

fn told(verdict: Option<Verdict>) -> Option<Verdict> {
    if let Some(verdict) = verdict.as_ref().filter(|verdict| verdict.is_refused) {
        let limit = verdict.name.clone();
        metrics::counter!("rate_limited_total", "limit" => limit).increment(1);
    }
    verdict
}
