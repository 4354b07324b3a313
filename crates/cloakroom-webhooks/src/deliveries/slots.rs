//! Limits on concurrent deliveries of a node, so that slow endpoints of one tenant do not take the slots of others.

use std::collections::HashMap;

use uuid::Uuid;

const TOTAL_MAX: usize = 64;
const PER_TENANT_MAX: usize = 16;
const PER_WEBHOOK_MAX: usize = 8;

/// Deliveries in flight.
#[derive(Default)]
pub(super) struct Slots {
    total: usize,
    by_tenant: HashMap<i32, usize>,
    by_webhook: HashMap<(i32, Uuid), usize>,
}

impl Slots {
    /// How many more deliveries may start for this webhook.
    pub(super) fn free(&self, tenant: i32, webhook: Uuid) -> usize {
        let in_tenant = self.by_tenant.get(&tenant).copied().unwrap_or_default();
        let in_webhook = self.by_webhook.get(&(tenant, webhook)).copied();
        let free = [
            TOTAL_MAX.saturating_sub(self.total),
            PER_TENANT_MAX.saturating_sub(in_tenant),
            PER_WEBHOOK_MAX.saturating_sub(in_webhook.unwrap_or_default()),
        ];
        free.into_iter().min().unwrap_or_default()
    }

    pub(super) fn is_full(&self) -> bool {
        self.total >= TOTAL_MAX
    }

    pub(super) fn take(&mut self, tenant: i32, webhook: Uuid) {
        self.total += 1;
        *self.by_tenant.entry(tenant).or_default() += 1;
        *self.by_webhook.entry((tenant, webhook)).or_default() += 1;
    }

    pub(super) fn release(&mut self, tenant: i32, webhook: Uuid) {
        self.total = self.total.saturating_sub(1);
        release(&mut self.by_tenant, &tenant);
        release(&mut self.by_webhook, &(tenant, webhook));
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

    #[test]
    fn one_tenant_cannot_take_all_slots() {
        let webhooks: Vec<Uuid> = (0..10).map(Uuid::from_u128).collect();
        let mut slots = Slots::default();
        let fill = |slots: &mut Slots, tenant: i32| {
            for webhook in &webhooks {
                for _ in 0..slots.free(tenant, *webhook) {
                    slots.take(tenant, *webhook);
                }
            }
        };

        assert_eq!(slots.free(1, webhooks[0]), PER_WEBHOOK_MAX);
        fill(&mut slots, 1);
        assert_eq!(slots.by_tenant[&1], PER_TENANT_MAX);
        assert_eq!(slots.free(1, webhooks[5]), 0);
        assert_eq!(slots.free(2, webhooks[0]), PER_WEBHOOK_MAX);
        for tenant in 2..10 {
            fill(&mut slots, tenant);
        }
        assert_eq!(slots.total, TOTAL_MAX);
        assert!(slots.is_full());

        slots.release(1, webhooks[0]);
        assert_eq!(slots.free(1, webhooks[0]), 1);
        assert!(!slots.is_full());
    }
}
