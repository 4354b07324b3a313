//! Pre-configured proxies: a destination, its configuration values and its transforms, behind a key.
//!
//! Reading order: [`NewProxy`] is a request, `proxy` its validation, `row` how it is sealed and authenticated; one file
//! per operation. [`find_by_key`] finds the [`ProxyDefinition`] of an invocation.

mod api;
mod application;
mod body;
mod create;
mod delete;
mod destination;
mod event;
mod examine;
mod find;
mod find_by_key;
mod list_open;
mod parameters;
mod proxy;
mod reseal;
mod rotate;
mod row;
mod store;
mod update;

use cloakroom_core::access::{GrantExceeded, LockError, PermissionDenied};
use cloakroom_core::access_change::AccessChange;
use cloakroom_core::audit::{AuditError, Entry};
use cloakroom_core::current_keys::MayBeStale;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::keys;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;

pub use self::api::routes;
pub use self::body::NewProxy;
pub use self::create::create;
pub use self::delete::delete;
pub use self::examine::examine_rows;
pub use self::find::{Filter, ProxyPage, find, list};
pub use self::find_by_key::find_by_key;
pub use self::list_open::list_open;
pub use self::proxy::Proxy;
pub use self::reseal::reseal;
pub use self::rotate::rotate_key;
pub(crate) use self::row::key_name;
pub(crate) use self::store::STATEMENTS;
pub use self::update::{patch, replace};
pub use crate::definition::ProxyDefinition;
use crate::server::ProxyServer;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error(transparent)]
    GrantExceeded(#[from] GrantExceeded),
    #[error("the request is invalid")]
    Invalid(Vec<FieldError>),
    #[error("code transforms are not built")]
    NotBuilt,
    #[error("no such proxy")]
    NotFound,
    #[error("the tenant already has {0} proxies, the maximum")]
    TooMany(i64),
    #[error("the proxy was modified concurrently")]
    Contended,
    #[error("the {0} was changed outside the vault")]
    Altered(&'static str),
    #[error(transparent)]
    AuditError(#[from] AuditError),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl MayBeStale for Error {
    fn is_stale_key(&self) -> bool {
        matches!(self, Self::Storage(storage::Error::StaleKey))
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Stale => Self::Altered("proxy"),
            LockError::Storage(error) => error.into(),
        }
    }
}

/// A change of a proxy of `tenant` that is not committed yet.
struct Change<'a> {
    server: &'a ProxyServer,
    tenant: TenantId,
    transaction: AccessChange<'a>,
}

impl Change<'_> {
    /// Commits a write with its audit log entry and the stored response, or rolls back. Every change of a proxy ends here.
    ///
    /// Invocations on this node see the change at once, even if its outcome is unknown.
    async fn commit<T>(
        self,
        written: Result<T, Error>,
        entry: impl FnOnce(&T) -> Entry,
        template: &ResponseTemplate<'_, T>,
    ) -> Result<T, Error> {
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                self.transaction.roll_back().await;
                return Err(error);
            }
        };
        let response = match template.render_pending(&written) {
            Ok(response) => response,
            Err(error) => {
                self.transaction.roll_back().await;
                return Err(error.into());
            }
        };
        let committed = self
            .transaction
            .commit_with(&[entry(&written)], response)
            .await;
        self.server.definitions.invalidate(self.tenant);
        committed?;
        Ok(written)
    }
}
