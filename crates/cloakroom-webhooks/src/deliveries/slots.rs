//! Limits on concurrent deliveries of a node, so that slow or failing endpoints do not take the slots of others.

use std::collections::HashMap;

use cloakroom_platform::config;
use uuid::Uuid;

/// A webhook of a tenant.
pub(super) type WebhookKey = (i32, Uuid);

/// Deliveries in flight.
pub(super) struct Slots {
    max: usize,
    max_per_webhook: usize,
    total: usize,
    /// Of `total`, those that were started in the single slot of a failing webhook.
    failing: usize,
    by_tenant: HashMap<i32, usize>,
    by_webhook: HashMap<WebhookKey, usize>,
}

impl Slots {
    pub(super) fn new(config: &config::Webhooks) -> Self {
        Self {
            max: config.max_in_flight,
            max_per_webhook: config.max_in_flight_per_webhook,
            total: 0,
            failing: 0,
            by_tenant: HashMap::new(),
            by_webhook: HashMap::new(),
        }
    }

    /// How many more deliveries may start for this webhook. A failing one gets a single slot, and all failing ones
    /// together half of the slots: each of their deliveries can occupy its slot for ten seconds.
    pub(super) fn free(&self, webhook: WebhookKey, is_failing: bool) -> usize {
        let in_tenant = self.by_tenant.get(&webhook.0).copied();
        let in_webhook = self.by_webhook.get(&webhook).copied();
        let (max_in_webhook, max_failing) = match is_failing {
            true => (1, self.max / 2),
            false => (self.max_per_webhook, usize::MAX),
        };
        let free = [
            self.max.saturating_sub(self.total),
            max_failing.saturating_sub(self.failing),
            (2 * self.max_per_webhook).saturating_sub(in_tenant.unwrap_or_default()),
            max_in_webhook.saturating_sub(in_webhook.unwrap_or_default()),
        ];
        free.into_iter().min().unwrap_or_default()
    }

    pub(super) fn is_full(&self) -> bool {
        self.total >= self.max
    }

    pub(super) fn take(&mut self, webhook: WebhookKey, is_failing: bool) {
        self.total += 1;
        self.failing += usize::from(is_failing);
        *self.by_tenant.entry(webhook.0).or_default() += 1;
        *self.by_webhook.entry(webhook).or_default() += 1;
    }

    pub(super) fn release(&mut self, webhook: WebhookKey, is_failing: bool) {
        self.total = self.total.saturating_sub(1);
        self.failing = self.failing.saturating_sub(usize::from(is_failing));
        release(&mut self.by_tenant, &webhook.0);
        release(&mut self.by_webhook, &webhook);
    }
}

fn release<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Slots {
        Slots::new(&config::Webhooks {
            max_in_flight: 64,
            max_in_flight_per_webhook: 8,
        })
    }

    /// Starts as many deliveries as possible for ten webhooks of a tenant.
    fn fill(slots: &mut Slots, tenant: i32, is_failing: bool) {
        for webhook in (0..10).map(Uuid::from_u128) {
            for _ in 0..slots.free((tenant, webhook), is_failing) {
                slots.take((tenant, webhook), is_failing);
            }
        }
    }

    #[test]
    fn one_tenant_cannot_take_all_slots() {
        let (first, other) = (Uuid::from_u128(0), Uuid::from_u128(5));
        let mut slots = slots();

        assert_eq!(slots.free((1, first), false), 8);
        fill(&mut slots, 1, false);
        assert_eq!(slots.by_tenant[&1], 16);
        assert_eq!(slots.free((1, other), false), 0);
        assert_eq!(slots.free((2, first), false), 8);
        for tenant in 2..10 {
            fill(&mut slots, tenant, false);
        }
        assert_eq!(slots.total, 64);
        assert!(slots.is_full());

        slots.release((1, first), false);
        assert_eq!(slots.free((1, first), false), 1);
        assert!(!slots.is_full());
    }

    #[test]
    fn failing_webhooks_have_one_slot_each_and_half_of_all() {
        let first = Uuid::from_u128(0);
        let mut slots = slots();

        assert_eq!(slots.free((1, first), true), 1);
        for tenant in 1..100 {
            fill(&mut slots, tenant, true);
        }
        assert_eq!(slots.total, 32);
        assert_eq!(slots.free((1, first), true), 0);
        assert_eq!(slots.free((200, first), false), 8);
        slots.release((1, first), true);
        assert_eq!(slots.free((1, first), true), 1);

        // A webhook that began to fail with several deliveries in flight starts no more.
        for _ in 0..3 {
            slots.take((200, first), false);
        }
        assert_eq!(slots.free((200, first), true), 0);
    }
}
