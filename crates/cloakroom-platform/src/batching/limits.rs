//! Limits of a batcher.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Batches in flight at once, not counting slow ones.
    pub max_in_flight: usize,
    /// Slow batches that may run beside those; beyond this, a slow batch keeps its slot.
    pub max_slow: usize,
    pub max_items: usize,
    /// A single larger item is sent alone.
    pub max_bytes: usize,
    /// Items waiting for a batch; beyond this, `QueueFull`.
    pub max_queued: usize,
    pub queue_timeout: Duration,
}

impl BatchLimits {
    /// Limits for SQL statements: while PostgreSQL works on one batch, the node encodes or decodes the other. Slow
    /// batches may use all remaining connections.
    pub fn for_statements(connections: usize, queue_timeout: Duration) -> Self {
        const IN_FLIGHT: usize = 2;
        Self {
            max_in_flight: IN_FLIGHT,
            max_slow: connections.saturating_sub(IN_FLIGHT),
            max_items: 128,
            max_bytes: 2 * 1024 * 1024,
            max_queued: 10_000,
            queue_timeout,
        }
    }

    /// Limits for Redis scripts. Redis runs one at a time, so two in flight keep it busy.
    pub fn for_redis(max_items: usize, queue_timeout: Duration) -> Self {
        Self {
            max_in_flight: 2,
            max_slow: 100,
            max_items,
            max_bytes: usize::MAX,
            max_queued: 10_000,
            queue_timeout,
        }
    }
}
