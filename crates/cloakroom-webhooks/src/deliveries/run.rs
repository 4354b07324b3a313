//! The delivery loop of a node.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::random_bytes;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::attempt::attempt;
use super::outcome::{OutcomeBatcher, OutcomeRow, OutcomeWriter};
use super::slots::Slots;
use super::store;
use crate::server::WebhookServer;
use crate::webhooks;

/// How long an event waits at most until an idle node looks for it.
const POLL_PERIOD: Duration = Duration::from_millis(250);
/// Longer than an attempt and the writes of its outcome. After a crash, other nodes repeat the attempt after this time.
const CLAIM_PERIOD: Duration = Duration::from_secs(30);

/// Delivers events until it is dropped. Attempts that are in progress then are repeated when their claim ends.
pub async fn run(server: WebhookServer) {
    let mut delivery_loop = DeliveryLoop {
        outcomes: Arc::new(OutcomeWriter::batched(&server)),
        server,
        slots: Slots::default(),
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
    /// Attempts in progress; each returns its tenant and webhook.
    attempts: JoinSet<(i32, Uuid)>,
    outcomes: Arc<OutcomeBatcher>,
}

impl DeliveryLoop {
    fn release(&mut self, finished: Result<(i32, Uuid), tokio::task::JoinError>) {
        match finished {
            Ok((tenant, webhook)) => self.slots.release(tenant, webhook),
            // Unreachable without a bug. All slots are counted anew rather than lost one by one.
            Err(_) if self.attempts.is_empty() => self.slots = Slots::default(),
            Err(_) => {}
        }
    }

    /// Starts due deliveries in the free slots, beginning with a random webhook.
    async fn start_due(&mut self) -> Result<(), webhooks::Error> {
        if self.slots.is_full() {
            return Ok(());
        }
        let mut due = store::list_due(&self.server.db).await?;
        if due.is_empty() {
            return Ok(());
        }
        let first = usize::from(u16::from_be_bytes(random_bytes())) % due.len();
        due.rotate_left(first);
        for (tenant, webhook) in due {
            self.start_due_of(tenant, webhook).await?;
        }
        Ok(())
    }

    async fn start_due_of(&mut self, tenant: i32, webhook: Uuid) -> Result<(), webhooks::Error> {
        let mut free = self.slots.free(tenant, webhook);
        if free == 0 {
            return Ok(());
        }
        let Some(endpoint) = webhooks::find_endpoint(&self.server, tenant, webhook).await? else {
            return Ok(());
        };
        let endpoint = Arc::new(endpoint);
        // Claims again while rows that wait for others filled the window.
        while free > 0 {
            let limit = i64::try_from(free).unwrap_or(1);
            let (db, owner) = (&self.server.db, endpoint.tenant);
            let claim = store::claim(db, owner, webhook, limit, CLAIM_PERIOD).await?;
            let is_done = !claim.is_partial;
            for claimed in claim.deliveries {
                self.slots.take(tenant, webhook);
                let (server, endpoint) = (self.server.clone(), endpoint.clone());
                let outcomes = self.outcomes.clone();
                self.attempts.spawn(async move {
                    let outcome = attempt(&server, &endpoint, &claimed).await;
                    let row = OutcomeRow::new(tenant, webhook, &claimed, outcome);
                    // An outcome that cannot be written leads to another attempt.
                    let _ignored = outcomes.process(row).await;
                    (tenant, webhook)
                });
            }
            free = self.slots.free(tenant, webhook);
            if is_done {
                break;
            }
        }
        Ok(())
    }
}

fn error_kind(error: &webhooks::Error) -> &'static str {
    match error {
        webhooks::Error::Storage(error) => error.kind(),
        _ => "webhooks",
    }
}
