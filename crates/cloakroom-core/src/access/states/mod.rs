//! Access states: which of the authentic rows of a tenant are the current ones.
//!
//! A row MAC proves that Cloakroom wrote a row, not that the row is current: every backup holds authentic rows that were
//! deleted or changed since. So every bucket of a tenant has a state with a generation and a digest of its row MACs, which
//! is rewritten in the transaction of every change ([`LockedBucket`]) and checked wherever a row is loaded to grant
//! something ([`StoredBucket`]). A node refuses a generation that is lower than one it has seen ([`AccessStates`]).

mod bucket;
mod keysets;
mod locked;
mod memory;
mod reanchor;
mod renew;
pub(super) mod store;
mod verify;

use cloakroom_crypto::content_digest;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use tokio_postgres::Row;

pub use self::bucket::Bucket;
pub use self::locked::{LockError, LockedBucket, lock};
pub use self::memory::AccessStates;
pub use self::reanchor::{Anchored, Reanchored, reanchor};
pub use self::renew::renew_swept;
pub use self::store::MacTable;
pub(crate) use self::store::{list_orphans, list_outdated, renew};
pub use self::verify::verify_states;
use super::AuthenticatedRow;
use crate::keys::ControlKey;

/// Why the rows of a bucket are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The rows do not match the state, or the state is missing or not authentic.
    Inconsistent,
    /// The state is older than one that this node has seen. A concurrent change can cause it as well: read again.
    Older,
}

/// The state of a bucket, as its MAC covers it.
pub(super) struct StateRow {
    pub tenant_number: i32,
    pub bucket: Bucket,
    pub generation: i64,
    pub digest: Vec<u8>,
}

impl StateRow {
    /// The first state of a bucket without rows.
    pub(super) fn empty(tenant_number: i32, bucket: Bucket) -> Self {
        Self {
            tenant_number,
            bucket,
            generation: 1,
            digest: digest(&[]).to_vec(),
        }
    }
}

impl AuthenticatedRow for StateRow {
    const DOMAIN: &'static str = "row.access_state.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        vec![
            self.tenant_number.to_be_bytes().to_vec(),
            self.bucket.number().to_be_bytes().to_vec(),
            self.generation.to_be_bytes().to_vec(),
            self.digest.clone(),
        ]
    }
}

/// SHA-256 over the sorted row MACs, each with its length, as `content_digest` frames it.
pub(super) fn digest(macs: &[Vec<u8>]) -> [u8; 32] {
    let mut sorted: Vec<&[u8]> = macs.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let mut content = Vec::with_capacity(sorted.len() * 36);
    for mac in sorted {
        let length = u32::try_from(mac.len()).unwrap_or(u32::MAX);
        content.extend_from_slice(&length.to_be_bytes());
        content.extend_from_slice(mac);
    }
    content_digest(&content)
}

/// A bucket as one statement read it: its state and the MACs of all its rows. Not verified yet.
pub struct StoredBucket {
    state: Option<StoredState>,
    macs: Vec<Vec<u8>>,
}

struct StoredState {
    generation: i64,
    digest: Vec<u8>,
    row_mac: Vec<u8>,
}

impl StoredBucket {
    /// Reads the columns of `access_state_columns!`, which start at `at`.
    pub fn read(row: &Row, at: usize) -> Self {
        let generation: Option<i64> = row.get(at);
        Self {
            state: generation.map(|generation| StoredState {
                generation,
                digest: row.get(at + 1),
                row_mac: row.get(at + 2),
            }),
            macs: row.get(at + 3),
        }
    }

    /// A bucket that is never verified, for placeholders.
    pub(crate) fn empty() -> Self {
        Self {
            state: None,
            macs: Vec::new(),
        }
    }

    /// Whether a row with this MAC is in the bucket.
    pub fn contains(&self, row_mac: &[u8]) -> bool {
        self.macs.iter().any(|mac| mac == row_mac)
    }

    /// Verifies that the rows match their state, of whatever generation.
    pub fn verify(
        &self,
        control: &ControlKey,
        tenant_number: i32,
        bucket: Bucket,
    ) -> Result<(), Stale> {
        self.generation(control, tenant_number, bucket).map(drop)
    }

    /// Verifies that the rows are those of the state, and returns its generation.
    fn generation(
        &self,
        control: &ControlKey,
        tenant_number: i32,
        bucket: Bucket,
    ) -> Result<i64, Stale> {
        let state = self.state.as_ref().ok_or(Stale::Inconsistent)?;
        let row = StateRow {
            tenant_number,
            bucket,
            generation: state.generation,
            digest: state.digest.clone(),
        };
        let is_authentic = row.is_genuine(control, &state.row_mac);
        let is_current = digest(&self.macs).as_slice() == state.digest;
        match is_authentic && is_current {
            true => Ok(state.generation),
            false => Err(Stale::Inconsistent),
        }
    }
}

/// Reads again this often if a concurrent change of this node is seen halfway.
const ATTEMPTS: usize = 5;

/// Reads a row with its buckets and verifies that it is current.
///
/// A statement that started before a change was committed can end after this node has seen the change. Its result is older
/// without any fault, so it is read again.
pub async fn read_current<T, E, F>(
    read: impl Fn() -> F,
    verify: impl Fn(&T) -> Result<(), Stale>,
) -> Result<Option<(T, Result<(), Stale>)>, E>
where
    F: Future<Output = Result<Option<T>, E>>,
{
    let mut attempt = 1;
    loop {
        let Some(found) = read().await? else {
            return Ok(None);
        };
        match verify(&found) {
            Err(Stale::Older) if attempt < ATTEMPTS => attempt += 1,
            verdict => return Ok(Some((found, verdict))),
        }
    }
}

/// Reports rows that are not current, for the operator.
pub fn report_stale(tenant: TenantId) {
    catalog::ACCESS_STALE_ROWS.increment(1);
    tracing::error!(
        error.kind = "stale_rows",
        tenant.id = %tenant.uuid,
        "rows of a tenant were restored, added or deleted outside the vault; they grant nothing until `cloakroom \
         doctor` finds no difference"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_every_mac_and_not_on_their_order() {
        let one = [vec![1; 32], vec![2; 32]];
        let swapped = [vec![2; 32], vec![1; 32]];
        let split = [vec![1; 32], vec![2; 16], vec![2; 16]];

        assert_eq!(digest(&one), digest(&swapped));
        for other in [&one[..1], &one[1..], &split[..], &[]] {
            assert_ne!(digest(&one), digest(other), "{}", other.len());
        }
    }
}
