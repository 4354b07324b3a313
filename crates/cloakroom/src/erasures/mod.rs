//! Erasing again what an older backup brings back.
//!
//! A backup holds what was deleted after it was made: tokens, tenants, applications and their keys. So what was
//! erased is written into a ledger that is kept apart from the database ([`write()`]), and whoever
//! restores a backup has it applied before a node starts ([`apply`]). What expires needs no ledger: its time is over in
//! a restored database as well.

mod apply;
mod ledger;
mod write;

use jiff::Timestamp;
use uuid::Uuid;

pub use self::apply::{Applied, apply};
pub use self::ledger::Ledger;
pub use self::write::write;
use crate::audit::EntityKind;
use crate::{applications, storage, tenants, tokens};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("line {0} of the ledger cannot be read: it was cut off or changed")]
    Unreadable(usize),
    #[error("the ledger was changed, or comes from another vault: its signature does not fit")]
    NotGenuine,
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Tokens(#[from] tokens::Error),
    #[error(transparent)]
    Applications(#[from] applications::Error),
    #[error(transparent)]
    Tenants(#[from] tenants::Error),
}

/// Something that was erased for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub at: Timestamp,
    pub tenant: Uuid,
    pub kind: EntityKind,
    pub id: String,
}
