//! Counts the use of deprecated features by application.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cloakroom_platform::storage::{self, Db};
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

use super::{Deprecation, store};
use crate::access::Principal;

/// Calls counted in memory until the next write.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<CounterKey, i64>>);

/// Identifies a counter. Ordered, so that nodes that write at the same time lock rows in the same
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CounterKey {
    pub(super) tenant: i32,
    pub(super) name: &'static str,
    pub(super) application: Uuid,
}

impl Counts {
    /// Counts one call.
    pub fn add(&self, principal: &Principal, row: &Deprecation) {
        let tenant = principal.tenant.uuid.to_string();
        catalog::DEPRECATED_CALLS
            .with([row.name.to_owned(), tenant])
            .increment(1);
        let counter = CounterKey {
            tenant: principal.tenant.number,
            name: row.name,
            application: principal.application,
        };
        *self.lock().entry(counter).or_default() += 1;
    }

    /// Writes the calls counted since the last write. After a failure or cancellation they are
    /// written later; calls that a killed node has not written are lost.
    pub async fn write(&self, db: &Db) -> Result<(), storage::Error> {
        let mut pending = PendingWrite {
            counts: self,
            calls: std::mem::take(&mut *self.lock()),
        };
        if pending.calls.is_empty() {
            return Ok(());
        }
        store::add(db, &pending.calls).await?;
        pending.calls.clear();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CounterKey, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls that are being written; restored on drop unless the write succeeded.
struct PendingWrite<'a> {
    counts: &'a Counts,
    calls: BTreeMap<CounterKey, i64>,
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        for (counter, calls) in std::mem::take(&mut self.calls) {
            *counts.entry(counter).or_default() += calls;
        }
    }
}
