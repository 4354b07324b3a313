//! How often each application uses what is deprecated.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::{Deprecation, store};
use crate::caller::Caller;
use crate::storage;
use crate::vault::Vault;

/// Calls that are counted in memory, until the next write.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<Counted, i64>>);

/// Whose calls of what. In order, so that nodes which write at one moment lock rows in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counted {
    pub(super) tenant: i32,
    pub(super) name: &'static str,
    pub(super) application: Uuid,
}

impl Counts {
    /// One call more.
    pub(super) fn add(&self, caller: &Caller, row: &Deprecation) {
        let tenant = caller.tenant.uuid.to_string();
        metrics::counter!("deprecated_calls_total", "deprecation" => row.name, "tenant" => tenant)
            .increment(1);
        let counted = Counted {
            tenant: caller.tenant.number,
            name: row.name,
            application: caller.application,
        };
        *self.lock().entry(counted).or_default() += 1;
    }

    /// Writes down what was counted since the last time. What cannot be written is written later, also
    /// if nobody waits for this to end; what a killed node has not written is not counted.
    pub async fn write(&self, vault: &Vault) -> Result<(), storage::Error> {
        let mut taken = Taken {
            counts: self,
            calls: std::mem::take(&mut *self.lock()),
        };
        if taken.calls.is_empty() {
            return Ok(());
        }
        store::add(&vault.db, &taken.calls).await?;
        taken.calls.clear();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Counted, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls on their way to the database; those that did not get there are given back.
struct Taken<'a> {
    counts: &'a Counts,
    calls: BTreeMap<Counted, i64>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        for (what, calls) in std::mem::take(&mut self.calls) {
            *counts.entry(what).or_default() += calls;
        }
    }
}
