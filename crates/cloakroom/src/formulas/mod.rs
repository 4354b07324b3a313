//! Lists and finds connection formulas: the configuration and the features of a connection to one payment processor.
//!
//! The crate `cloakroom-formulas` holds the catalog, which is the same for all tenants.

mod api;
mod body;
mod etag;
mod find;
mod list;

use cloakroom_core::access::PermissionDenied;

pub use self::api::routes;
pub use self::find::find;
pub use self::list::{FormulaPage, list};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("there is no such formula")]
    NotFound,
}
