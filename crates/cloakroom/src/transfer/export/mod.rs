//! Exports the tokens of a tenant: one person requests it, another approves it, and it is encrypted to the receiver's key.
//!
//! An export is a folder: `tokens.jwe` has one JWE per line, each with a chunk of JSON lines that [`import`] reads, and
//! `manifest.json` the counts and digests, which the audit authority of the vault signs (`manifest.sig`).
//!
//! [`import`]: super::import

mod approve;
mod examine;
mod manifest;
mod request;
mod run;
mod store;
mod verify;

use cloakroom_core::access::LockError;
use cloakroom_core::keys;
use cloakroom_management::tenants;
use cloakroom_platform::storage;
use cloakroom_tokens::tokens;
use uuid::Uuid;

pub use self::approve::{approve, cancel, list, request, verify_requests};
pub use self::examine::examine_rows;
pub use self::manifest::{Chunk, Manifest};
pub use self::request::{ExportRequest, NewExport};
pub use self::run::run;
pub(super) use self::store::STATEMENTS;
pub use self::verify::{Verified, verify};

/// The encrypted tokens.
pub const TOKENS_FILE: &str = "tokens.jwe";
pub const MANIFEST_FILE: &str = "manifest.json";
pub const SIGNATURE_FILE: &str = "manifest.sig";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the reason must have 1 to 500 printable characters, and contain no card number")]
    Reason,
    #[error("no export {0} is requested for this tenant; `cloakroom export list` lists all")]
    NotFound(Uuid),
    #[error(
        "export {0} was changed outside the vault; it is not executed. `cloakroom audit verify` names altered rows"
    )]
    Altered(Uuid),
    #[error(
        "export {0} was canceled or has run, and was restored outside the vault; it is not executed. Request it again"
    )]
    Ended(Uuid),
    #[error("export {0} was requested more than seven days ago; request it again")]
    Expired(Uuid),
    #[error(
        "export {id} must be approved by another person: {user} requested it. Approve it with `cloakroom export approve` \
         from another user account; a name given with --as does not count"
    )]
    SamePerson { id: Uuid, user: String },
    #[error(
        "the receiver's key of export {0} has another fingerprint than --receiver; nothing was approved. Compare both with the \
         receiver; if the export has another key, cancel it with `cloakroom export cancel`"
    )]
    OtherReceiver(Uuid),
    #[error(
        "export {0} is not approved; another person approves it with `cloakroom export approve`"
    )]
    NotApproved(Uuid),
    #[error("export {0} is approved already")]
    AlreadyApproved(Uuid),
    #[error("{path} cannot be written: {reason}")]
    File { path: String, reason: String },
    #[error("{path} cannot be verified: {reason}")]
    Invalid { path: String, reason: String },
    #[error(
        "the export has {exported} tokens, but the database has {counted} in the same snapshot; nothing was published"
    )]
    Mismatch { exported: u64, counted: u64 },
    #[error("the receiver's key cannot be used: it is no valid X25519 public key")]
    Receiver,
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    #[error(transparent)]
    Tenants(#[from] tenants::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
