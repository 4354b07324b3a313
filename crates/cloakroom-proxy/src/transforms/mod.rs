//! Transforms: changes that a pre-configured proxy makes to requests and responses.

use cloakroom_platform::api::ApiError;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use crate::exchange::{BufferedResponse, Exchange};
use crate::server::ProxyServer;

/// A transform of a request or a response.
#[derive(Clone, Debug)]
pub enum Transform {}

/// The transforms of a proxy, and whose permissions they have.
#[derive(Clone, Debug)]
pub struct Transforms {
    pub tenant: TenantId,
    /// The application whose permissions transforms have.
    pub application: Option<Uuid>,
    /// With any of these, the request body is received completely before it is sent.
    pub request: Vec<Transform>,
    /// With any of these, a successful response is received completely before it is returned.
    pub response: Vec<Transform>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {}
    }
}

/// Applies the request transforms, after expressions are replaced and before anything is sent.
pub async fn apply_request(
    _server: &ProxyServer,
    _transforms: &Transforms,
    _exchange: &mut Exchange,
) -> Result<(), Error> {
    Ok(())
}

/// Applies the response transforms. If it fails, the response is not returned.
pub async fn apply_response(
    _server: &ProxyServer,
    _transforms: &Transforms,
    _exchange: &mut Exchange,
    _response: &mut BufferedResponse,
) -> Result<(), Error> {
    Ok(())
}
