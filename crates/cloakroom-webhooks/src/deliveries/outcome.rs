//! Writes the outcomes of attempts, batched.

use std::time::Duration;

use cloakroom_core::vault::Vault;
use cloakroom_platform::batching::{BatchHandler, BatchLimits, Batcher};
use cloakroom_platform::storage::{Db, Error};
use cloakroom_platform::telemetry::catalog;
use jiff::Timestamp;
use tokio::time::sleep;
use uuid::Uuid;

use super::attempt::Outcome;
use super::schedule::{RETRY_PERIOD, delay_after, pause_after};
use super::slots::WebhookKey;
use super::store::{self, ClaimedDelivery};

/// Attempts to write outcomes before the claims end. Then the events are sent again.
const WRITE_ATTEMPTS: usize = 5;
const WRITE_DELAY: Duration = Duration::from_millis(500);

/// The outcome of one attempt, as the statement needs it.
#[derive(Clone)]
pub(super) struct OutcomeRow {
    pub tenant: i32,
    pub webhook: Uuid,
    pub event: Uuid,
    pub claim: Timestamp,
    /// 1 delivered, 2 failed, 3 not attempted.
    pub kind: i16,
    pub delay: Duration,
    pub status: Option<i16>,
    pub error: Option<&'static str>,
}

impl OutcomeRow {
    /// The outcome of an attempt on a webhook that was paused `pauses` times since its last response.
    pub(super) fn new(
        (tenant, webhook): WebhookKey,
        claimed: &ClaimedDelivery,
        outcome: Outcome,
        pauses: u32,
    ) -> Self {
        let status = |status: http::StatusCode| i16::try_from(status.as_u16()).ok();
        let (kind, status, error) = match outcome {
            Outcome::Delivered(code) => (1, status(code), None),
            Outcome::Rejected(code) => (2, status(code), Some("status")),
            Outcome::Failed(reason) => (2, None, Some(reason)),
            Outcome::Busy(reason) | Outcome::Unsigned(reason) => (3, None, Some(reason)),
        };
        let delay = match kind {
            2 => delay_after(claimed.attempts + 1),
            3 => pause_after(pauses + 1),
            _ => Duration::ZERO,
        };
        Self {
            tenant,
            webhook,
            event: claimed.event.id,
            claim: claimed.claim,
            kind,
            delay,
            status,
            error,
        }
    }
}

/// Batches the outcomes of this node.
pub(super) type OutcomeBatcher = Batcher<OutcomeWriter>;

pub(super) struct OutcomeWriter {
    db: Db,
}

impl OutcomeWriter {
    pub(super) fn batched(vault: &Vault) -> OutcomeBatcher {
        let settings = &vault.config.database;
        // One batch at a time: two could update the same webhooks in a different order.
        let limits = BatchLimits {
            max_in_flight: 1,
            max_slow: 0,
            queue_timeout: Duration::from_secs(10),
            ..BatchLimits::for_statements(settings.max_connections, settings.acquire_timeout)
        };
        let db = vault.db.clone();
        Batcher::new(Self { db }, limits)
    }
}

impl BatchHandler for OutcomeWriter {
    type Item = OutcomeRow;
    type Output = ();

    const NAME: &'static str = "webhook_outcomes";
    const COMPLETES: bool = true;

    async fn process(&self, outcomes: Vec<OutcomeRow>) -> Vec<()> {
        for _ in 0..WRITE_ATTEMPTS {
            match store::write_outcomes(&self.db, &outcomes, RETRY_PERIOD).await {
                Ok(failed) => {
                    count(&outcomes, failed);
                    break;
                }
                Err(error) => report(&error, outcomes.len()),
            }
            sleep(WRITE_DELAY).await;
        }
        vec![(); outcomes.len()]
    }
}

fn count(outcomes: &[OutcomeRow], failed: u64) {
    for outcome in outcomes {
        let label = match outcome.kind {
            1 => "delivered",
            2 => "failed",
            _ => "not_attempted",
        };
        catalog::WEBHOOK_ATTEMPTS.with([label]).increment(1);
    }
    catalog::WEBHOOK_EVENTS_FAILED.increment(failed);
}

fn report(error: &Error, outcomes: usize) {
    tracing::warn!(
        job = "webhooks",
        error.kind = error.kind(),
        count = outcomes,
        "outcomes of webhook deliveries could not be written; these events may be sent again"
    );
}
