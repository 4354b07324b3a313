//! Limits requests in flight: per node, per destination, and each tenant's share of both. Callers without a key have a part
//! of that share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::destination_key::DestinationKey;

/// Counts requests in flight. There is no queue: a request above a limit fails at once.
#[derive(Clone)]
pub(crate) struct InFlight {
    counts: Arc<Mutex<Counts>>,
    max: usize,
    max_per_destination: usize,
}

#[derive(Default)]
struct Counts {
    node: Shares,
    destinations: HashMap<Arc<str>, Shares>,
}

/// Requests in flight, in total and by tenant.
#[derive(Default)]
struct Shares {
    total: usize,
    tenants: HashMap<i32, TenantCount>,
}

#[derive(Clone, Copy, Default)]
struct TenantCount {
    all: usize,
    anonymous: usize,
}

/// The share that a request is counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Tenant,
    /// Requests of callers without a key, which count against the share of the tenant as well.
    Anonymous,
}

/// A counted request. Dropping it ends the count.
pub(crate) struct Permit {
    counts: Arc<Mutex<Counts>>,
    key: DestinationKey,
    share: Share,
}

impl InFlight {
    pub(crate) fn new(max: usize, max_per_destination: usize) -> Self {
        Self {
            counts: Arc::default(),
            max,
            max_per_destination,
        }
    }

    /// Counts a request, unless that exceeds a limit.
    pub(crate) fn acquire(&self, key: &DestinationKey, share: Share) -> Option<Permit> {
        let mut counts = lock(&self.counts);
        let of_destination = counts.destinations.get(&key.authority);
        let tenant = key.tenant;
        let has_room = counts.node.has_room(tenant, share, self.max)
            && of_destination
                .is_none_or(|shares| shares.has_room(tenant, share, self.max_per_destination));
        if !has_room {
            return None;
        }
        counts.node.add(tenant, share);
        let destinations = &mut counts.destinations;
        let shares = destinations.entry(Arc::clone(&key.authority));
        shares.or_default().add(tenant, share);
        Some(Permit {
            counts: Arc::clone(&self.counts),
            key: key.clone(),
            share,
        })
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.counts).node.total
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        counts.node.remove(self.key.tenant, self.share);
        if let Some(shares) = counts.destinations.get_mut(&self.key.authority) {
            shares.remove(self.key.tenant, self.share);
            if shares.total == 0 {
                counts.destinations.remove(&self.key.authority);
            }
        }
    }
}

impl Shares {
    /// Whether there is room for another request, of which one tenant gets three quarters at most, and its callers without
    /// a key one quarter.
    fn has_room(&self, tenant: i32, share: Share, max: usize) -> bool {
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default();
        let is_within_share = match share {
            Share::Tenant => true,
            Share::Anonymous => of_tenant.anonymous < (max / 4).max(1),
        };
        self.total < max && of_tenant.all < (max * 3 / 4).max(1) && is_within_share
    }

    fn add(&mut self, tenant: i32, share: Share) {
        self.total += 1;
        let count = self.tenants.entry(tenant).or_default();
        count.all += 1;
        count.anonymous += usize::from(share == Share::Anonymous);
    }

    fn remove(&mut self, tenant: i32, share: Share) {
        self.total = self.total.saturating_sub(1);
        if let Some(count) = self.tenants.get_mut(&tenant) {
            count.all = count.all.saturating_sub(1);
            let anonymous = usize::from(share == Share::Anonymous);
            count.anonymous = count.anonymous.saturating_sub(anonymous);
            if count.all == 0 {
                self.tenants.remove(&tenant);
            }
        }
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: i32, authority: &str) -> DestinationKey {
        DestinationKey {
            tenant,
            authority: authority.into(),
        }
    }

    fn acquire_all(limits: &InFlight, key: &DestinationKey) -> Vec<Permit> {
        std::iter::from_fn(|| limits.acquire(key, Share::Tenant)).collect()
    }

    #[test]
    fn a_tenant_gets_three_quarters_of_a_destination() {
        let limits = InFlight::new(1_000, 8);

        let first = acquire_all(&limits, &key(1, "a.example"));
        let second = acquire_all(&limits, &key(2, "a.example"));
        let elsewhere = acquire_all(&limits, &key(1, "b.example"));

        assert_eq!((first.len(), second.len(), elsewhere.len()), (6, 2, 6));
        drop(first);
        assert_eq!(acquire_all(&limits, &key(2, "a.example")).len(), 4);
    }

    #[test]
    fn callers_without_a_key_get_one_quarter_of_a_destination() {
        let limits = InFlight::new(1_000, 8);
        let key = key(1, "a.example");

        let anonymous = std::iter::from_fn(|| limits.acquire(&key, Share::Anonymous));
        let anonymous: Vec<Permit> = anonymous.take(8).collect();
        let authenticated = acquire_all(&limits, &key);

        assert_eq!((anonymous.len(), authenticated.len()), (2, 4));
        drop(anonymous);
        assert!(limits.acquire(&key, Share::Anonymous).is_some());
    }

    #[test]
    fn a_tenant_gets_three_quarters_of_the_node() {
        let limits = InFlight::new(8, 8);
        let hosts: Vec<String> = (0..8).map(|n| format!("{n}.example")).collect();

        let one_tenant: Vec<Permit> = hosts
            .iter()
            .filter_map(|host| limits.acquire(&key(1, host), Share::Tenant))
            .collect();

        assert_eq!(one_tenant.len(), 6);
        let other = acquire_all(&limits, &key(2, "a.example"));
        assert_eq!((other.len(), limits.count()), (2, 8));
        drop((one_tenant, other));
        assert_eq!(limits.count(), 0);
        assert!(lock(&limits.counts).destinations.is_empty());
        assert!(lock(&limits.counts).node.tenants.is_empty());
    }
}
