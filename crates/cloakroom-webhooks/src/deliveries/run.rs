//! The delivery loop of a node.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::random_bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::attempt::{Outcome, attempt};
use super::health::EndpointHealth;
use super::outcome::{OutcomeBatcher, OutcomeRow, OutcomeWriter};
use super::slots::{Slots, WebhookKey};
use super::store::{self, ClaimedDelivery};
use crate::server::WebhookServer;
use crate::webhooks::{self, Endpoint};

/// How long an event waits at most until an idle node looks for it.
const POLL_PERIOD: Duration = Duration::from_millis(250);
/// Longer than an attempt and the writes of its outcome. After a crash, other nodes repeat the attempt after this time.
const CLAIM_PERIOD: Duration = Duration::from_secs(30);
/// Due events that the claims of one pass look at. More than can be claimed, so that those that wait for others do not
/// hide the rest. No more than two claims: one webhook must not hold up the others.
const WINDOWS: [i64; 2] = [64, 512];

/// Delivers events until it is dropped. Attempts that are in progress then are repeated when their claim ends.
pub async fn run(server: WebhookServer) {
    let mut delivery_loop = DeliveryLoop {
        outcomes: Arc::new(OutcomeWriter::batched(&server)),
        slots: Slots::new(&server.config.webhooks),
        health: EndpointHealth::default(),
        server,
        attempts: JoinSet::new(),
    };
    let mut ticks = interval(POLL_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_available = true;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(finished) = delivery_loop.attempts.join_next() => delivery_loop.release(finished),
        }
        while let Some(finished) = delivery_loop.attempts.try_join_next() {
            delivery_loop.release(finished);
        }
        let claimed = delivery_loop.start_due().await;
        if was_available && let Err(error) = &claimed {
            tracing::warn!(
                job = "webhooks",
                error.kind = error_kind(error),
                "due webhook deliveries could not be claimed; the next run retries"
            );
        }
        was_available = claimed.is_ok();
        if !was_available {
            ticks.tick().await;
        }
    }
}

struct DeliveryLoop {
    server: WebhookServer,
    slots: Slots,
    health: EndpointHealth,
    attempts: JoinSet<Finished>,
    outcomes: Arc<OutcomeBatcher>,
}

/// An attempt whose outcome is written.
struct Finished {
    webhook: WebhookKey,
    /// Whether it was started in the single slot of a failing webhook.
    is_failing: bool,
    outcome: Outcome,
}

impl DeliveryLoop {
    fn release(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => {
                self.slots.release(finished.webhook, finished.is_failing);
                self.record(&finished);
            }
            // Unreachable without a bug. All slots are counted anew rather than lost one by one.
            Err(_) if self.attempts.is_empty() => {
                self.slots = Slots::new(&self.server.config.webhooks);
            }
            Err(_) => {}
        }
    }

    fn record(&mut self, finished: &Finished) {
        let Finished {
            webhook, outcome, ..
        } = finished;
        let is_paused = self.health.record(*webhook, *outcome, Instant::now());
        if let Outcome::Unsigned(kind) = outcome
            && is_paused
        {
            tracing::error!(
                job = "webhooks",
                error.kind = kind,
                webhook.id = %webhook.1,
                "events cannot be signed; the deliveries of this webhook are paused"
            );
        }
    }

    /// Starts due deliveries in the free slots, beginning with a random webhook.
    async fn start_due(&mut self) -> Result<(), webhooks::Error> {
        if self.slots.is_full() {
            return Ok(());
        }
        self.server.keys.refresh_if_stale().await;
        let mut due = store::list_due(&self.server.db).await?;
        self.health.sweep(Instant::now());
        if due.is_empty() {
            return Ok(());
        }
        let first = usize::from(u16::from_be_bytes(random_bytes())) % due.len();
        due.rotate_left(first);
        for due in due {
            self.start_due_of(due.webhook, due.is_failing).await?;
        }
        Ok(())
    }

    async fn start_due_of(
        &mut self,
        webhook: WebhookKey,
        is_failing: bool,
    ) -> Result<(), webhooks::Error> {
        let now = Instant::now();
        let is_failing = is_failing || self.health.is_failing(webhook, now);
        let mut free = self.slots.free(webhook, is_failing);
        if free == 0 || self.health.is_paused(webhook, now) {
            return Ok(());
        }
        let (tenant, id) = webhook;
        let endpoint = match webhooks::find_endpoint(&self.server, tenant, id).await {
            Ok(Some(endpoint)) => Arc::new(endpoint),
            // Disabled or deleted since it was listed.
            Ok(None) => return Ok(()),
            Err(webhooks::Error::Altered) => {
                self.health.pause_altered(webhook, now);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // The second claim looks at more events, if the first found only such that wait for others.
        for window in WINDOWS {
            let limit = i64::try_from(free).unwrap_or(1);
            let (db, owner) = (&self.server.db, endpoint.tenant);
            let claim = store::claim(db, (owner, id), window, limit, CLAIM_PERIOD).await?;
            for claimed in claim.deliveries {
                self.start(&endpoint, claimed, is_failing);
            }
            free = self.slots.free(webhook, is_failing);
            if free == 0 || !claim.is_partial {
                break;
            }
        }
        Ok(())
    }

    fn start(&mut self, endpoint: &Arc<Endpoint>, claimed: ClaimedDelivery, is_failing: bool) {
        let webhook = (endpoint.tenant.number, endpoint.row.id);
        self.slots.take(webhook, is_failing);
        let (server, endpoint) = (self.server.clone(), endpoint.clone());
        let (outcomes, pauses) = (self.outcomes.clone(), self.health.pauses(webhook));
        self.attempts.spawn(async move {
            let outcome = attempt(&server, &endpoint, &claimed).await;
            let row = OutcomeRow::new(webhook, &claimed, outcome, pauses);
            // An outcome that cannot be written leads to another attempt.
            let _ignored = outcomes.process(row).await;
            Finished {
                webhook,
                is_failing,
                outcome,
            }
        });
    }
}

fn error_kind(error: &webhooks::Error) -> &'static str {
    match error {
        webhooks::Error::Storage(error) => error.kind(),
        _ => "webhooks",
    }
}
