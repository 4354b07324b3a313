//! Tokens: encrypted data addressed by an id.

mod api;
mod attributes;
mod commit;
mod content;
mod create;
mod delete;
mod disclosure;
mod expire;
mod export;
mod find;
mod freshness;
mod import;
mod lock;
mod request;
mod store;
mod token;
mod token_vault;
mod update;
mod view;
mod written_token;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::caller::Caller;
use cloakroom_core::{audit, keys, velocity};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;

pub use self::api::{TokenBody, routes};
pub use self::attributes::TokenAttributes;
pub use self::create::validate::ValidatedToken;
pub use self::create::{create, create_all};
pub use self::delete::{delete, erase, is_erasable, sweep, sweep_reserved_ids};
pub use self::disclosure::{reveals, reveals_anywhere, reveals_in};
pub use self::export::{ExportedToken, Snapshot};
pub use self::find::{
    Lookup, find, find_all, find_readable, read_data_internally, read_entries, record_reads,
    use_data,
};
pub use self::freshness::{Difference, HistoryFinding, HistoryReport, Scope, verify_histories};
pub use self::import::{
    BatchRecord, ImportLine, ImportToken, Imported, import, plan_import, reasons,
};
pub use self::lock::TokenLocks;
pub use self::request::{Change, NewToken, TokenPatch};
pub use self::store::ExportFilter;
pub(crate) use self::store::{
    CLAIM_STATEMENTS, DELETE_STATEMENTS, EXPIRED_STATEMENTS, EXPORT_STATEMENTS, HISTORY_STATEMENTS,
    IMPORT_STATEMENTS, INSERT_STATEMENTS, READER_STATEMENTS, REDIGEST_STATEMENTS,
    RESEAL_STATEMENTS, STATEMENTS, TokenRow, UPDATE_STATEMENTS, read_columns, read_list,
    token_columns,
};
pub use self::token::Token;
pub use self::token_vault::TokenVault;
pub use self::update::update;
pub use self::update::{count_former, redigest, remove_unnamed_rows, reseal};
pub use self::view::{SearchTerms, TokenView, VisibleData, view_readable};
pub use self::written_token::WrittenToken;
use crate::intents;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("changing {0} requires permission to reveal the data")]
    NeedsReveal(&'static str),
    #[error("token not found")]
    NotFound,
    #[error("the id is in use or belonged to a deleted token")]
    IdTaken,
    #[error("concurrent modification; attempts exhausted")]
    Contended,
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    Intent(#[from] intents::Error),
    #[error(transparent)]
    AuditError(#[from] audit::AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// Prefixes the paths of validation errors with the token's position in a larger request.
    fn within(self, path: &str) -> Self {
        match self {
            Self::Invalid(broken) => {
                Self::Invalid(broken.into_iter().map(|rule| rule.within(path)).collect())
            }
            other => other,
        }
    }
}

/// Counts rejected card numbers toward the velocity limit; returns `outcome` unchanged.
async fn count_rejected_numbers<T>(
    vault: &TokenVault,
    caller: &Caller,
    outcome: Result<T, Error>,
) -> Result<T, Error> {
    if let Err(Error::Invalid(broken)) = &outcome {
        velocity::count_invalid_numbers(&vault.velocity, caller, broken).await?;
    }
    outcome
}
