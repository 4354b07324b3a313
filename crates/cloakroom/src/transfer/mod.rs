//! Moves tokens into and out of the vault in files, for operators.
//!
//! [`import`] reads JSON lines or CSV, in clear or encrypted, and writes tokens in batches, each with its progress. [`export`]
//! writes tokens encrypted to a receiver's key, after two persons agreed, with a signed manifest. Neither writes data in
//! clear to a file.

mod caller;
pub mod export;
pub mod import;
mod jwe;
mod key;

pub use self::caller::operator_caller;
pub use self::key::{KeyError, PrivateKey, PublicKey};

use crate::storage::Statement;

/// The SQL statements of this module.
pub fn statements() -> impl Iterator<Item = Statement> {
    let imports = import::STATEMENTS.iter().copied();
    imports.chain(export::STATEMENTS.iter().copied())
}
