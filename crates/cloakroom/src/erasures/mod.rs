//! Deletes again what restoring an older backup brings back.
//!
//! A backup contains entities that were deleted after it was made: tokens, tenants, applications and their keys.
//! [`write()`] builds a ledger of these deletions from the verified audit log, to be stored separately from the
//! database. After a backup is restored, [`apply`] deletes them again before a node starts, within limits that the
//! operator sets. Expiry needs no ledger: expired entities are expired in a restored database as well.

mod apply;
mod ledger;
mod plan;
mod write;

use cloakroom_core::audit::{EntityKind, VerificationReport};
use cloakroom_management::{applications, tenants};
use cloakroom_platform::storage;
use cloakroom_tokens::tokens;
use jiff::Timestamp;
use uuid::Uuid;

pub use self::apply::{Applied, apply};
pub use self::ledger::Ledger;
pub use self::plan::{Counts, Limits, Plan, plan};
pub use self::write::write;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("line {0} of the ledger cannot be read: it was truncated or modified")]
    Unreadable(usize),
    #[error("the ledger was modified or belongs to another vault: its signature does not verify")]
    InvalidSignature,
    #[error(
        "the audit log does not verify ({findings} findings, first: {first}); no ledger was written. Run \
         `cloakroom audit verify` and find out who changed the log"
    )]
    Unverified { findings: u64, first: String },
    #[error(
        "the ledger deletes more than the limits allow ({counts}); nothing was deleted. Review it with --dry-run, then \
         pass {options}"
    )]
    OverLimit { counts: Counts, options: String },
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    #[error(transparent)]
    Applications(#[from] applications::Error),
    #[error(transparent)]
    Tenants(#[from] tenants::Error),
}

impl Error {
    fn unverified(verified: &VerificationReport) -> Self {
        Self::Unverified {
            findings: verified.finding_count,
            first: verified
                .findings
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }
}

/// The permanent deletion of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub at: Timestamp,
    pub tenant: Uuid,
    pub kind: EntityKind,
    pub id: String,
}
