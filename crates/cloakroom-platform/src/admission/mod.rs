//! Limits how many requests run at a time, fairly between tenants.
//!
//! A node has a number of permits. A request takes a free one, or waits in the queue of its tenant; released permits
//! go to the queues round-robin. One tenant never holds more than three quarters of the permits, so that the others
//! find one, however much it sends.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// Requests of one tenant that may wait. With more, the last would time out.
const MAX_QUEUED: usize = 1_000;

/// The number of a tenant.
type Tenant = i32;

/// A semaphore that is fair between tenants.
#[derive(Clone)]
pub struct FairSemaphore {
    state: Arc<Mutex<State>>,
    queue_timeout: Duration,
}

/// The queue was full, or no permit became free within the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overloaded;

/// A permit of a tenant, released when it is dropped.
pub struct Permit {
    tenant: Tenant,
    /// `None` for a permit that was never counted, because the request it was made for is gone.
    state: Option<Arc<Mutex<State>>>,
}

struct State {
    permits: usize,
    /// Permits that one tenant may hold.
    max_per_tenant: usize,
    in_use: usize,
    tenants: HashMap<Tenant, TenantQueue>,
    /// Tenants with queued requests, in the order in which they get permits.
    round_robin: VecDeque<Tenant>,
}

#[derive(Default)]
struct TenantQueue {
    in_use: usize,
    queued: VecDeque<oneshot::Sender<Permit>>,
}

impl FairSemaphore {
    pub fn new(permits: usize, queue_timeout: Duration) -> Self {
        let permits = permits.max(1);
        Self {
            state: Arc::new(Mutex::new(State {
                permits,
                max_per_tenant: (permits * 3 / 4).max(1),
                in_use: 0,
                tenants: HashMap::new(),
                round_robin: VecDeque::new(),
            })),
            queue_timeout,
        }
    }

    /// Waits for a permit, behind the other requests of this tenant.
    pub async fn acquire(&self, tenant: Tenant) -> Result<Permit, Overloaded> {
        let receiver = {
            let mut state = lock(&self.state);
            let max_per_tenant = state.max_per_tenant;
            let is_full = state.in_use >= state.permits;
            let queue = state.tenants.entry(tenant).or_default();
            if !is_full && queue.in_use < max_per_tenant && queue.queued.is_empty() {
                queue.in_use += 1;
                state.in_use += 1;
                return Ok(Permit::new(tenant, &self.state));
            }
            if queue.queued.len() >= MAX_QUEUED {
                return Err(Overloaded);
            }
            let (sender, receiver) = oneshot::channel();
            queue.queued.push_back(sender);
            if queue.queued.len() == 1 {
                state.round_robin.push_back(tenant);
            }
            receiver
        };
        match timeout(self.queue_timeout, receiver).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Overloaded),
        }
    }
}

impl Permit {
    fn new(tenant: Tenant, state: &Arc<Mutex<State>>) -> Self {
        Self {
            tenant,
            state: Some(Arc::clone(state)),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            lock(&state).release(self.tenant, &state);
        }
    }
}

impl State {
    fn release(&mut self, tenant: Tenant, shared: &Arc<Mutex<Self>>) {
        self.in_use = self.in_use.saturating_sub(1);
        if let Some(queue) = self.tenants.get_mut(&tenant) {
            queue.in_use = queue.in_use.saturating_sub(1);
            if queue.in_use == 0 && queue.queued.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        while self.in_use < self.permits && self.grant_next(shared) {}
    }

    /// Grants a permit to the next tenant that may hold another one. Returns false if there is none.
    fn grant_next(&mut self, shared: &Arc<Mutex<Self>>) -> bool {
        for _ in 0..self.round_robin.len() {
            let Some(tenant) = self.round_robin.pop_front() else {
                return false;
            };
            let Some(queue) = self.tenants.get_mut(&tenant) else {
                continue;
            };
            if queue.in_use >= self.max_per_tenant {
                self.round_robin.push_back(tenant);
                continue;
            }
            let is_granted = queue.grant(tenant, shared);
            if !queue.queued.is_empty() {
                self.round_robin.push_back(tenant);
            } else if queue.in_use == 0 {
                self.tenants.remove(&tenant);
            }
            if is_granted {
                self.in_use += 1;
                return true;
            }
        }
        false
    }
}

impl TenantQueue {
    /// Grants a permit to the first request that still waits. Returns false if there is none.
    fn grant(&mut self, tenant: Tenant, shared: &Arc<Mutex<State>>) -> bool {
        while let Some(sender) = self.queued.pop_front() {
            match sender.send(Permit::new(tenant, shared)) {
                Ok(()) => {
                    self.in_use += 1;
                    return true;
                }
                // The request is gone. Its permit was never counted, so dropping it must not release one.
                Err(mut permit) => permit.state = None,
            }
        }
        false
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
