//! A digest over the access states of all tenants, which checkpoints commit to.

use std::pin::pin;

use cloakroom_crypto::sha256;
use cloakroom_platform::storage::{self, Connection};
use futures_util::TryStreamExt as _;

use crate::audit::store;

/// What a checkpoint says about the rights of all tenants: restoring an older state of them changes the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSummary {
    /// Sum of the generations of all rows. Rows are never deleted and every change counts up, so it only grows.
    pub generations: u128,
    pub digest: [u8; 32],
}

impl AccessSummary {
    /// Whether the states can be a later version of `earlier`.
    pub(in crate::audit) fn follows(&self, earlier: &Self) -> bool {
        self.generations > earlier.generations || self == earlier
    }
}

/// Hashes the rows of `access_state` in the order of their key.
pub async fn access_summary(connection: &Connection) -> Result<AccessSummary, storage::Error> {
    let rows = store::stream_access_states(connection).await?;
    let mut rows = pin!(rows);
    let mut summary = AccessSummary {
        generations: 0,
        digest: [0; 32],
    };
    let mut message = Vec::new();
    while let Some(row) = rows.try_next().await? {
        message.clear();
        message.extend(summary.digest);
        message.extend(row.tenant_number.to_be_bytes());
        message.extend(row.bucket.to_be_bytes());
        message.extend(row.generation.to_be_bytes());
        message.extend(&row.digest);
        summary.digest = sha256(&message);
        summary.generations += u128::from(row.generation.unsigned_abs());
    }
    Ok(summary)
}
