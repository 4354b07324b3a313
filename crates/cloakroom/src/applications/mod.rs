//! Applications: who may use a tenant's vault, with which keys and grants.

mod api;
mod application;
mod asker;
mod body;
mod create;
mod delete;
mod find;
mod key;
mod parameters;
mod store;
mod sweep;
mod template;
mod update;

pub use self::api::routes;
pub use self::application::{Application, ApplicationKey, NewApplication};
pub use self::asker::Asker;
pub use self::create::{Created, create};
pub use self::delete::delete;
pub use self::find::{Filter, Listed, find, find_own, list};
pub(crate) use self::key::delete_key_by_id;
pub use self::key::{CreatedKey, create_key, delete_key, find_key, import_key, list_keys};
pub(crate) use self::store::STATEMENTS;
pub use self::sweep::sweep;
pub use self::template::{TEMPLATES, Template};
pub use self::update::{ApplicationChange, update};
use crate::api::Broken;
use crate::audit::{Entry, Recorded, Unrecorded};
use crate::caller::Denied;
use crate::idempotency::Reply;
use crate::storage;
use crate::vault::Vault;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("{}", told(.0))]
    Invalid(Vec<Broken>),
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The application whose key was used is gone, and so is the key.
    #[error("no valid key")]
    Unauthorized,
    #[error("an application has at most {0} keys, and this one has them all: delete one first")]
    TooManyKeys(i64),
    #[error("the {0} was changed outside the vault")]
    Altered(&'static str),
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Keeps what was written, with the record of it, or gives all of it up.
async fn settle<T>(
    recorded: Recorded<'_>,
    written: Result<T, Error>,
    entries: impl FnOnce(&T) -> Vec<Entry>,
    reply: &Reply<'_, T>,
) -> Result<T, Error> {
    match written {
        Ok(written) => {
            let kept = reply.keep(&written)?;
            recorded.commit_with(&entries(&written), kept).await?;
            Ok(written)
        }
        Err(error) => {
            recorded.roll_back().await;
            Err(error)
        }
    }
}

/// The same for what takes rights away: once it may have been committed, nobody is remembered here
/// any more, even when the outcome is unknown.
async fn settle_and_forget<T>(
    vault: &Vault,
    recorded: Recorded<'_>,
    written: Result<T, Error>,
    entries: impl FnOnce(&T) -> Vec<Entry>,
    reply: &Reply<'_, T>,
) -> Result<T, Error> {
    let is_written = written.is_ok();
    let settled = settle(recorded, written, entries, reply).await;
    if is_written {
        vault.authenticator.forget_all();
    }
    settled
}

/// Every broken rule, for people.
fn told(broken: &[Broken]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
