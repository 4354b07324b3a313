//! The catalog of connection formulas, which is the same for every tenant.

mod api;
mod body;
mod etag;
mod find;
mod list;

pub use self::api::routes;
pub use self::find::find;
pub use self::list::{Listed, list};
use crate::caller::Denied;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("there is no such formula")]
    NotFound,
}
