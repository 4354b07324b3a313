//! Who is asking: applications, their keys, what their grants allow, and what their tenants want.

mod api_key;
mod application;
mod authenticate;
mod condition;
mod container;
mod examine;
pub mod gate;
mod grants;
mod new_grants;
mod permission;
mod quotas;
mod row_mac;
mod store;
mod tenant;

pub(crate) use self::api_key::is_legacy_lookup;
pub use self::api_key::{ApiKey, KeyParts, LegacyKey};
pub use self::application::ApplicationKind;
pub(crate) use self::application::check_name;
pub(crate) use self::authenticate::secret_mac;
pub use self::authenticate::{Authenticator, authenticate, authenticate_at_any};
pub use self::condition::{Attribute, Condition, Operator, Scope, Subject};
pub use self::container::{Container, NotAContainer};
pub use self::examine::{Examined, examine};
pub(crate) use self::grants::implicit_transform;
pub use self::grants::{AccessRule, Grants, Transform};
pub use self::new_grants::{NewCondition, NewGrants, NewRule};
pub use self::permission::{ALL_PERMISSIONS, Permission, PermissionSet};
pub use self::quotas::{Quotas, RateLimit, TenantQuotas};
pub(crate) use self::row_mac::{
    ApplicationRow, Authenticated, KeyRow, NO_QUOTAS, SessionRow, TenantRow,
};
pub(crate) use self::store::STATEMENTS;
pub use self::tenant::{DeduplicationBehavior, Tenant, TenantKind, TenantSettings};
use crate::api::Broken;
use crate::{keys, storage};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Missing, malformed, unknown, expired, altered or foreign: the caller learns only this.
    #[error("no valid key")]
    Unauthorized,
    #[error("{field} {rule}")]
    Invalid { field: String, rule: String },
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("the {0} was changed outside the vault")]
    Altered(&'static str),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::invalid(broken.path, broken.rule)
    }
}

impl Error {
    fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            rule: rule.into(),
        }
    }
}
