//! Rotation of keys while the vault serves.
//!
//! An operator starts a rotation (`start`): a new version is added, which nodes load. Any node advances it (`advance`): the
//! new version is promoted, the old one closed for writes, all rows are sealed again or their digests or MACs computed
//! again (`rewrite`, `remac`), and a full scan proves that none is left (`proof`, `digest_scan`). Then an operator destroys the old version (`retire`).
//!
//! What is allowed follows from the states of the keys, which are authenticated. The table of rotations is progress only.

mod advance;
mod digest_scan;
mod kek;
mod phase;
mod proof;
mod remac;
mod retire;
mod rewrite;
mod root;
mod schedule;
mod start;
mod status;
mod store;

use cloakroom_core::access::LockError;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::keys;
use cloakroom_crypto::KeyPurpose;
use cloakroom_management::tenants;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

pub use self::advance::work;
pub use self::kek::rotate_kek;
pub use self::phase::Phase;
pub use self::proof::{Proof, verify_proofs};
pub use self::retire::retire;
pub use self::root::{RootReport, rotate_root};
pub use self::schedule::start_due;
pub use self::start::start;
pub use self::status::{Progress, measure, status};
pub(crate) use self::store::{MAC_STATEMENTS, SCAN_STATEMENTS, STATEMENTS};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("keys of the purpose `{0}` cannot be rotated")]
    Purpose(&'static str),
    #[error(
        "version {version} of this key is being replaced already; `cloakroom key status` shows the progress"
    )]
    UnderWay { version: u32 },
    #[error(
        "every key is wrapped by this root key already; describe the new one in `root_key`, and the former one in \
         `root_key.previous`"
    )]
    SameRoot,
    #[error("this key has no version that can be retired: {0}")]
    NotProved(String),
    #[error("the proof for this key is not authentic; it was changed outside the vault")]
    FalseProof,
    #[error("rows of the tenant were changed outside the vault; `cloakroom doctor` names them")]
    Altered,
    /// Another node advances the rotation, or the operator does.
    #[error("the rotation was advanced by another process; run the command again")]
    Contended,
    #[error("rows could not be rewritten: {0}")]
    Rewrite(String),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Tenants(#[from] tenants::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// The value of `error.kind` in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Keys(_) => "key_error",
            Self::Tenants(_) => "tenant_error",
            Self::Altered => "altered_keyset",
            Self::Rewrite(_) => "rewrite_failed",
            Self::Purpose(_)
            | Self::UnderWay { .. }
            | Self::SameRoot
            | Self::NotProved(_)
            | Self::FalseProof
            | Self::Contended => "rotation_refused",
        }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered,
            LockError::Storage(error) => error.into(),
        }
    }
}

/// A rotation and its progress.
#[derive(Clone, Debug)]
pub struct Rotation {
    pub tenant: TenantId,
    pub purpose: KeyPurpose,
    pub from: u32,
    pub to: u32,
    pub phase: Phase,
    /// The table that is rewritten.
    step: i16,
    /// The last row of it that was rewritten.
    position: Uuid,
    pub scanned: u64,
    pub rewritten: u64,
    pub unreadable: u64,
    closed_xid: Option<i64>,
    generation: i64,
    pub requested_by: String,
    pub started_at: Timestamp,
    pub phase_at: Timestamp,
    /// When this was read, by the database's clock.
    pub read_at: Timestamp,
}

/// The audit log entry of a step of a rotation. Clients store fingerprints, so steps of their key are also an event for the
/// tenant's webhooks.
fn key_entry(tenant: TenantId, purpose: KeyPurpose, operation: Operation, version: u32) -> Entry {
    let id = format!("{}-{version}", purpose.name());
    let entry = Entry::by_system(tenant.number, operation, EntityKind::EncryptionKey, id);
    let state = match operation {
        Operation::Create => "announced",
        Operation::Activate => "active",
        Operation::Prove => "replaced",
        Operation::Destroy => "destroyed",
        _ => return entry,
    };
    match purpose {
        KeyPurpose::Fingerprint => {
            let key = json!({"version": version, "state": state});
            let (kind, data) = (
                EventKind::FingerprintKeyUpdated,
                json!({"fingerprint_key": key}),
            );
            entry.with_event(Event::new(kind, "fingerprint-key", data))
        }
        _ => entry,
    }
}
