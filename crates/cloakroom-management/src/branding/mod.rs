//! Branding of the hosted pages of a tenant: name, logo and colors, validated when they are set.

mod api;
mod color;
mod delete;
mod examine;
mod find;
mod image;
mod row;
mod set;
mod store;

use cloakroom_core::access::{LockError, PermissionDenied};
use cloakroom_core::audit::AuditError;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::storage;
use jiff::Timestamp;
use uuid::Uuid;

pub use self::api::routes;
pub use self::color::{Color, Colors, DARK_SURFACE, LIGHT_SURFACE};
pub use self::delete::delete;
pub use self::examine::examine_rows;
pub use self::find::{find, find_by_id, find_for_page};
pub use self::image::{Image, ImageKind};
pub use self::set::{NewBranding, NewColors, set};
pub(crate) use self::store::STATEMENTS;

/// The branding of a tenant. Attributes without a value have the defaults of the pages.
#[derive(Clone, Debug)]
pub struct Branding {
    /// Changes with every change of the branding.
    pub id: Uuid,
    pub name: Option<String>,
    pub colors: Option<Colors>,
    /// Colors for browsers that prefer a dark color scheme.
    pub dark_colors: Option<Colors>,
    pub logo: Option<Image>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("the tenant has no branding")]
    NotFound,
    #[error("the branding was changed outside the vault")]
    Altered,
    #[error(transparent)]
    AuditError(#[from] AuditError),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered,
            LockError::Storage(error) => error.into(),
        }
    }
}
