//! Who is asking: tenants, applications, their keys, and what their grants allow.

mod api_key;
mod application;
mod authenticate;
mod container;
mod create_application;
mod create_key;
mod create_tenant;
mod examine;
pub mod gate;
mod grants;
mod permission;
mod quotas;
mod row_mac;
mod store;
mod tenant;

pub use self::api_key::{ApiKey, KeyParts};
pub use self::application::{Application, ApplicationKind, NewApplication};
pub use self::authenticate::{Authenticator, authenticate};
pub use self::container::{Container, NotAContainer};
pub use self::create_application::create_application;
pub use self::create_key::{CreatedKey, create_key};
pub use self::create_tenant::{create_tenant, find_tenant, list_tenants, longest_log_retention};
pub use self::examine::{Examined, examine};
pub use self::grants::{AccessRule, Grants, Transform};
pub use self::permission::{ALL_PERMISSIONS, Permission, PermissionSet};
pub use self::quotas::{Quotas, RateLimit, TenantQuotas};
pub(crate) use self::store::STATEMENTS;
pub use self::tenant::{DeduplicationBehavior, NewTenant, Tenant, TenantKind, TenantSettings};
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
    #[error("other tenants were made at the same moment; try again")]
    Busy,
    #[error(
        "an application has at most {0} keys, and this one has them all: make another application"
    )]
    TooManyKeys(i64),
    #[error("a vault of the environment `test` keeps test tenants only")]
    ProductionTenantInTest,
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            rule: rule.into(),
        }
    }
}
