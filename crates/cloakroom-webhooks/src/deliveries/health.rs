//! What a node has learned about endpoints: those that it cannot reach now are paused, and slow ones get one slot.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::attempt::Outcome;
use super::schedule::pause_after;
use super::slots::WebhookKey;

/// How long a webhook has one slot after an attempt timed out.
const SLOW_FOR: Duration = Duration::from_secs(30);
/// How long the number of pauses is remembered after the last one has ended.
const FORGET_AFTER: Duration = Duration::from_secs(300);
/// How long a webhook whose row was changed by SQL is not read again.
const ALTERED_FOR: Duration = Duration::from_secs(60);

/// The webhooks with recent problems. Pauses spare the database: claiming an event that cannot be sent costs two writes.
#[derive(Default)]
pub(super) struct EndpointHealth(HashMap<WebhookKey, Health>);

#[derive(Clone, Copy)]
struct Health {
    paused_until: Instant,
    /// Consecutive pauses without a response.
    pauses: u32,
    slow_until: Instant,
}

impl EndpointHealth {
    pub(super) fn is_paused(&self, webhook: WebhookKey, now: Instant) -> bool {
        let health = self.0.get(&webhook);
        health.is_some_and(|health| now < health.paused_until)
    }

    /// Whether the webhook gets a single slot: it was paused since its last response, or timed out recently.
    pub(super) fn is_failing(&self, webhook: WebhookKey, now: Instant) -> bool {
        let health = self.0.get(&webhook);
        health.is_some_and(|health| health.pauses > 0 || now < health.slow_until)
    }

    /// Consecutive pauses without a response.
    pub(super) fn pauses(&self, webhook: WebhookKey) -> u32 {
        self.0.get(&webhook).map_or(0, |health| health.pauses)
    }

    /// Records the outcome of an attempt; returns whether it began a pause.
    pub(super) fn record(&mut self, webhook: WebhookKey, outcome: Outcome, now: Instant) -> bool {
        match outcome {
            Outcome::Delivered(_) | Outcome::Rejected(_) => {
                if let Some(health) = self.0.get_mut(&webhook) {
                    health.pauses = 0;
                    health.paused_until = now;
                }
                false
            }
            Outcome::Failed("timeout") => {
                self.entry(webhook, now).slow_until = now + SLOW_FOR;
                false
            }
            Outcome::Failed(_) => false,
            // Other attempts that were in flight have the same outcome; they do not prolong the pause.
            Outcome::Busy(_) | Outcome::Unsigned(_) if self.is_paused(webhook, now) => false,
            Outcome::Busy(_) | Outcome::Unsigned(_) => {
                let health = self.entry(webhook, now);
                health.pauses += 1;
                health.paused_until = now + pause_after(health.pauses);
                true
            }
        }
    }

    /// Pauses a webhook whose row is not genuine, so that this is reported once in a while only.
    pub(super) fn pause_altered(&mut self, webhook: WebhookKey, now: Instant) {
        self.entry(webhook, now).paused_until = now + ALTERED_FOR;
    }

    /// Forgets old problems.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.0.retain(|_, health| {
            let ends = health.paused_until.max(health.slow_until);
            now < ends + FORGET_AFTER
        });
    }

    fn entry(&mut self, webhook: WebhookKey, now: Instant) -> &mut Health {
        self.0.entry(webhook).or_insert(Health {
            paused_until: now,
            pauses: 0,
            slow_until: now,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use uuid::Uuid;

    use super::*;

    const WEBHOOK: WebhookKey = (1, Uuid::nil());
    const BUSY: Outcome = Outcome::Busy("circuit_open");

    #[test]
    fn pauses_grow_to_a_minute_and_end_with_a_response() {
        let mut health = EndpointHealth::default();
        let mut now = Instant::now();
        for (pauses, seconds) in [
            (1, 5.0),
            (2, 10.0),
            (3, 20.0),
            (4, 40.0),
            (5, 60.0),
            (6, 60.0),
        ] {
            assert!(health.record(WEBHOOK, BUSY, now));
            assert!(!health.record(WEBHOOK, BUSY, now), "already paused");
            assert_eq!(health.pauses(WEBHOOK), pauses);
            assert!(health.is_paused(WEBHOOK, now + Duration::from_secs_f64(0.79 * seconds)));
            now += Duration::from_secs_f64(1.21 * seconds);
            assert!(!health.is_paused(WEBHOOK, now), "{pauses}");
            assert!(health.is_failing(WEBHOOK, now));
            assert!(!health.record(WEBHOOK, Outcome::Failed("connect"), now));
        }

        health.record(WEBHOOK, Outcome::Rejected(StatusCode::BAD_GATEWAY), now);
        assert_eq!(health.pauses(WEBHOOK), 0);
        assert!(!health.is_failing(WEBHOOK, now));
        health.sweep(now);
        assert_eq!(health.0.len(), 1);
        health.sweep(now + FORGET_AFTER);
        assert_eq!(health.0.len(), 0);
    }

    /// A response does not end it: an endpoint that hangs now and then would hold eight slots.
    #[test]
    fn a_timeout_leaves_one_slot_for_a_while() {
        let mut health = EndpointHealth::default();
        let now = Instant::now();

        health.record(WEBHOOK, Outcome::Failed("timeout"), now);
        health.record(WEBHOOK, Outcome::Delivered(StatusCode::OK), now);

        assert!(health.is_failing(WEBHOOK, now));
        assert!(!health.is_paused(WEBHOOK, now));
        assert!(!health.is_failing(WEBHOOK, now + SLOW_FOR));
    }
}
