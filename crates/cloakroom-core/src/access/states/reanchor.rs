//! Accepts the present rows of a tenant as the current ones, by decision of an operator.

use std::collections::BTreeMap;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db, Transaction};
use jiff::Timestamp;

use super::{Bucket, StateRow, digest, store};
use crate::access::AuthenticatedRow as _;
use crate::keys::ControlKey;

/// Buckets of a tenant that were written anew, and their rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reanchored {
    pub generations: BTreeMap<Bucket, i64>,
    pub rows: usize,
}

/// Which rows an operator accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchored {
    /// Rows that grant access.
    Access,
    /// Keys and their states, separately: accepting rights must never activate a key.
    Keys,
}

/// Writes states that match the present rows of a tenant.
///
/// The generation is at least the time in microseconds: it exceeds every generation that any node has seen, even if the
/// state in the database was replaced by an older one.
pub async fn reanchor(
    db: &Db,
    transaction: &Transaction,
    control: &ControlKey,
    (tenant, now, what): (TenantId, Timestamp, Anchored),
) -> Result<Reanchored, storage::Error> {
    let mut written = Reanchored::default();
    for bucket in store::list(db, tenant).await?.into_keys() {
        if (bucket == Bucket::KEYS) != (what == Anchored::Keys) {
            continue;
        }
        let mut state = StateRow::empty(tenant.number, bucket);
        let row_mac = state.row_mac(control);
        let locked = store::lock(transaction, &state, &row_mac).await?;
        let stored = locked.map_or(0, |(state, _)| state.generation);
        let members = store::list_bucket(transaction, tenant.number, bucket).await?;
        let macs: Vec<Vec<u8>> = members.into_iter().map(|member| member.row_mac).collect();
        state.digest = digest(&macs).to_vec();
        state.generation = stored.saturating_add(1).max(now.as_microsecond());
        store::write(transaction, &state, &state.row_mac(control), &[]).await?;
        written.generations.insert(bucket, state.generation);
        written.rows += macs.len();
    }
    Ok(written)
}
