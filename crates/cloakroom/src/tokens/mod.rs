//! Tokens: sealed data behind an id.

mod api;
mod content;
mod create;
mod delete;
mod draft;
mod find;
mod token;
mod turn;
mod update;
mod view;

pub use self::api::routes;
pub(crate) use self::api::{NewTokenBody, TokenBody};
pub use self::create::create;
pub(crate) use self::create::create_all;
pub(crate) use self::delete::erase;
pub use self::delete::{delete, sweep};
pub(crate) use self::draft::{Draft, draft};
pub use self::find::find;
pub(crate) use self::find::{FoundAll, find_all, find_readable, lend_data, record_reads, use_data};
pub use self::token::{Change, NewToken, Token};
pub use self::turn::Turns;
pub use self::update::{TokenPatch, update};
pub(crate) use self::view::view_readable;
pub use self::view::{Shown, TokenView};
use crate::access::DeduplicationBehavior;
use crate::api::Broken;
use crate::caller::{Caller, Denied};
use crate::vault::Vault;
use crate::{audit, keys, storage, token_intents, velocity};

/// What became of a token that was asked for.
#[derive(Clone)]
pub struct Placed {
    pub view: TokenView,
    /// Set when a token that was there took the place of the new one.
    pub deduplication: Option<DeduplicationBehavior>,
    /// Whether the data that was given for it came encrypted.
    pub was_encrypted: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the request breaks a rule")]
    Invalid(Vec<Broken>),
    #[error("no such token")]
    NotFound,
    #[error("the id is taken")]
    IdTaken,
    #[error("others changed the same tokens at the same moment, again and again")]
    Contended,
    #[error(transparent)]
    Velocity(#[from] velocity::Error),
    #[error(transparent)]
    Intent(#[from] token_intents::Error),
    #[error(transparent)]
    Unrecorded(#[from] audit::Unrecorded),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// The same failure of a token that stands somewhere in a larger request.
    fn within(self, place: &str) -> Self {
        match self {
            Self::Invalid(broken) => {
                Self::Invalid(broken.into_iter().map(|rule| rule.within(place)).collect())
            }
            other => other,
        }
    }
}

/// Passes an outcome on, once a number in it that is no card number is counted against its sender.
async fn noticed<T>(vault: &Vault, caller: &Caller, outcome: Result<T, Error>) -> Result<T, Error> {
    if let Err(Error::Invalid(broken)) = &outcome {
        velocity::notice_refused(vault, caller, broken).await?;
    }
    outcome
}
