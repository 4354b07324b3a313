//! Pre-configured proxies: a destination, its configuration values and its transforms, behind a key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::ApiError;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Statement;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

use crate::server::ProxyServer;
use crate::transforms::Transforms;

pub(crate) const STATEMENTS: &[Statement] = &[];

/// The routes of this module.
pub fn routes() -> OpenApiRouter<ProxyServer> {
    OpenApiRouter::new()
}

/// A pre-configured proxy as an invocation needs it.
pub struct ProxyDefinition {
    pub tenant: TenantId,
    pub id: Uuid,
    pub name: String,
    /// Validated when it was saved; checked again at each invocation.
    pub destination_url: String,
    /// Whether invocations require a key with `proxy:invoke`.
    pub require_auth: bool,
    /// Whether expressions of the caller are sent as they are.
    pub disable_detokenization: bool,
    pub configuration: BTreeMap<String, Sensitive<String>>,
    pub transforms: Transforms,
    /// Replaces the time limit of the destination.
    pub timeout: Option<Duration>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {}
    }
}

/// Finds a proxy by the key in `BT-PROXY-KEY`.
pub async fn find_by_key(
    _server: &ProxyServer,
    _key: &str,
) -> Result<Option<Arc<ProxyDefinition>>, Error> {
    Ok(None)
}
