//! A bucket that is locked for a change.

use cloakroom_platform::storage::{self, Transaction};

use super::{AccessStates, Bucket, StateRow, digest, store};
use crate::access::AuthenticatedRow as _;
use crate::keys::{ControlKey, version_of};

/// Why a bucket cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "rows of the tenant were restored, added or deleted outside the vault; `cloakroom doctor` names them, and \
         `cloakroom access re-anchor` accepts the present rows"
    )]
    Stale,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// A bucket whose rows were verified under the lock of its state.
///
/// The change declares the MACs that it adds and removes. They are not read again from the table: a row that SQL adds while
/// a change is under way must not enter the digest.
pub struct LockedBucket {
    state: StateRow,
    macs: Vec<Vec<u8>>,
    /// The versions of the control key that made the MACs of inserted rows.
    versions: Vec<i32>,
    is_changed: bool,
}

/// Locks a bucket until the end of the transaction and verifies that its rows are the current ones.
pub async fn lock(
    transaction: &Transaction,
    states: &AccessStates,
    control: &ControlKey,
    (tenant_number, bucket): (i32, Bucket),
) -> Result<LockedBucket, LockError> {
    let initial = StateRow::empty(tenant_number, bucket);
    let row_mac = initial.row_mac(control);
    let locked = store::lock(transaction, &initial, &row_mac).await?;
    let (state, row_mac) = locked.ok_or(LockError::Stale)?;
    let members = store::list_bucket(transaction, tenant_number, bucket).await?;
    let macs: Vec<Vec<u8>> = members.into_iter().map(|member| member.row_mac).collect();
    let is_current = state.is_genuine(control, &row_mac)
        && digest(&macs).as_slice() == state.digest
        && states.remember(tenant_number, bucket, state.generation);
    match is_current {
        true => Ok(LockedBucket {
            state,
            macs,
            versions: Vec::new(),
            is_changed: false,
        }),
        false => Err(LockError::Stale),
    }
}

impl LockedBucket {
    pub fn bucket(&self) -> Bucket {
        self.state.bucket
    }

    /// Declares a row that the change inserts.
    pub fn insert(&mut self, row_mac: &[u8]) {
        self.macs.push(row_mac.to_vec());
        self.is_changed = true;
        // Keys have no MAC: their columns take its place.
        if self.state.bucket != Bucket::KEYS {
            let version = version_of(row_mac).map(u32::cast_signed);
            self.versions.extend(version);
        }
    }

    /// Declares that the state is written again with the same rows, because the control key was replaced.
    pub fn renew(&mut self) {
        self.is_changed = true;
    }

    /// Declares a row that the change deletes. Fails if the row was not there when the bucket was locked.
    pub fn remove(&mut self, row_mac: &[u8]) -> Result<(), LockError> {
        let position = self.macs.iter().position(|mac| mac == row_mac);
        self.macs.swap_remove(position.ok_or(LockError::Stale)?);
        self.is_changed = true;
        Ok(())
    }

    /// Writes the next generation; `None` if nothing was changed. Remember it once the transaction is committed.
    pub async fn write(
        &self,
        transaction: &Transaction,
        control: &ControlKey,
    ) -> Result<Option<i64>, storage::Error> {
        if !self.is_changed {
            return Ok(None);
        }
        let next = StateRow {
            tenant_number: self.state.tenant_number,
            bucket: self.state.bucket,
            generation: self.state.generation.saturating_add(1),
            digest: digest(&self.macs).to_vec(),
        };
        let row_mac = next.row_mac(control);
        store::write(transaction, &next, &row_mac, &self.versions).await?;
        Ok(Some(next.generation))
    }
}
