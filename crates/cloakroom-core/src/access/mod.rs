//! Authentication and authorization: applications, API keys, grants, and the settings of tenants.

mod api_key;
mod application;
mod condition;
mod container;
mod grants;
mod new_grants;
mod permission;
mod principal;
mod principal_cache;
mod purpose;
mod quotas;
mod renew;
mod row_mac;
mod states;
mod store;
mod tenant;
mod verify_rows;

use cloakroom_platform::api::{ApiError, FieldError};
use cloakroom_platform::storage;

pub use self::api_key::{
    ApiKey, KeyParts, LegacyKey, is_legacy_lookup, key_digest, key_lookup, key_prefix,
};
pub use self::application::{ApplicationKind, check_name};
pub use self::condition::{Attribute, Condition, Operator, Resource, Scope};
pub use self::container::{Container, InvalidContainer};
pub use self::grants::{AccessRule, Grants, Transform, check_subset};
pub use self::new_grants::{NewCondition, NewGrants, NewRule};
pub use self::permission::{ALL_PERMISSIONS, Permission, PermissionSet, USE_PERMISSIONS};
#[cfg(test)]
pub use self::principal::tests::test_principal;
pub use self::principal::{GrantExceeded, PermissionDenied, Principal, PrincipalKind};
pub(crate) use self::principal_cache::CacheEntry;
pub use self::principal_cache::PrincipalCache;
pub use self::purpose::Purpose;
pub use self::quotas::{QuotaSource, Quotas, RateLimit, TenantQuotas};
pub(crate) use self::renew::OutdatedMacs;
pub use self::renew::{
    OutdatedRows, RenewedRows, examine_rows, is_tenant, list_tenants, report_orphans,
};
pub use self::row_mac::{
    ApplicationRow, AuthenticatedRow, KeyRow, NO_QUOTAS, SessionRow, TenantRow, optional_part,
};
pub(crate) use self::states::store::STATEMENTS as STATE_STATEMENTS;
pub use self::states::{
    AccessStates, Anchored, Bucket, LockError, LockedBucket, MacTable, Reanchored, Stale,
    StoredBucket, lock, read_current, reanchor, renew_swept, report_stale, verify_states,
};
pub(crate) use self::states::{list_outdated as list_outdated_states, renew as renew_macs};
pub use self::store::application_exists;
pub(crate) use self::store::{
    AnyKey, Credential, STATEMENTS, find_application, find_credential, find_session, find_tenant,
};
pub use self::tenant::{DeduplicationBehavior, Tenant, TenantKind, TenantSettings};
pub use self::verify_rows::{RowReport, verify_rows};
use crate::keys;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Missing, malformed, unknown, expired, altered or foreign: the client does not learn which.
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

impl From<FieldError> for Error {
    fn from(broken: FieldError) -> Self {
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

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthorized => Self::unauthorized(),
            Error::Invalid { field, rule } => Self::invalid(field, rule),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::Altered(_) => Self::internal("altered_row"),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}

impl From<PermissionDenied> for ApiError {
    fn from(denied: PermissionDenied) -> Self {
        Self::forbidden(format!(
            "The application of this key lacks the permission {denied}."
        ))
    }
}
