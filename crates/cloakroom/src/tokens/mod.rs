//! Tokens: sealed data behind an id.

mod api;
mod card;
mod create;
mod delete;
mod expiry;
mod find;
mod kind;
mod members;
mod metadata;
mod store;
mod token;
mod view;

pub use self::api::routes;
pub use self::create::create;
pub use self::delete::delete;
pub use self::find::find;
pub use self::kind::TokenKind;
pub(crate) use self::store::STATEMENTS;
pub use self::token::{NewToken, Privacy, Token};
pub use self::view::TokenView;
use crate::api::Broken;
use crate::caller::Denied;
use crate::{keys, storage};

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
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}
