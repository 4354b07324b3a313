//! Opens a connection: resolve once, check every address, connect to a checked address, verify TLS with the name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::ids::TenantId;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connect_proxy::ConnectProxy;
use crate::connection::Connection;
use crate::policy::Policy;
use crate::resolve::Resolver;
use crate::tls::TlsProfiles;
use crate::{DestinationUrl, NotSent, SendError};

/// Addresses that are tried, one after the other.
const ATTEMPTS_MAX: usize = 4;
/// Time for an address while there is another one to try.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_500);
const RESPONSE_HEADERS_MAX: usize = 128;
const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct Connector {
    pub(crate) policy: Policy,
    pub(crate) resolver: Resolver,
    pub(crate) tls: TlsProfiles,
    pub(crate) proxy: Option<ConnectProxy>,
}

impl Connector {
    pub(crate) async fn connect(
        &self,
        url: &DestinationUrl,
        tenant: TenantId,
        time_limit: Duration,
    ) -> Result<Connection, SendError> {
        let connection = timeout(time_limit, async {
            let addresses = self.resolver.resolve(url.host(), tenant).await?;
            self.policy.check_addresses(&addresses)?;
            let deadline = Instant::now() + time_limit;
            let stream = self
                .connect_to_any(&addresses, url.port(), deadline)
                .await?;
            let stream = self.start_tls(stream, url.host(), tenant).await?;
            start_http(stream).await
        });
        let connection = connection.await;
        connection.unwrap_or(Err(NotSent::ConnectTimeout.into()))
    }

    /// Tries addresses in the order of the resolver. Only the last one may take all the time that is left.
    async fn connect_to_any(
        &self,
        addresses: &[IpAddr],
        port: u16,
        deadline: Instant,
    ) -> Result<TcpStream, NotSent> {
        let mut failure = NotSent::Connect;
        let tried = &addresses[..addresses.len().min(ATTEMPTS_MAX)];
        for (index, address) in tried.iter().enumerate() {
            let is_last = index + 1 == tried.len();
            let until = match is_last {
                true => deadline,
                false => deadline.min(Instant::now() + ATTEMPT_TIMEOUT),
            };
            let attempt = self.connect_to(SocketAddr::new(*address, port));
            match timeout_at(until, attempt).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = NotSent::ConnectTimeout,
            }
        }
        Err(failure)
    }

    async fn connect_to(&self, address: SocketAddr) -> Result<TcpStream, NotSent> {
        let stream = match &self.proxy {
            Some(proxy) => proxy.connect(address).await?,
            None => TcpStream::connect(address)
                .await
                .map_err(|_| NotSent::Connect)?,
        };
        // Without it, a body that follows its head waits for the acknowledgment of the head.
        stream.set_nodelay(true).map_err(|_| NotSent::Connect)?;
        Ok(stream)
    }

    async fn start_tls(
        &self,
        stream: TcpStream,
        host: &str,
        tenant: TenantId,
    ) -> Result<TlsStream<TcpStream>, SendError> {
        let config = Arc::clone(self.tls.find(host, tenant));
        let name = ServerName::try_from(host.to_owned()).map_err(|_| SendError::Tls)?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|_| SendError::Tls)
    }
}

async fn start_http(stream: TlsStream<TcpStream>) -> Result<Connection, SendError> {
    let (sender, driver) = http1::Builder::new()
        // Some servers expect names as they are usually written.
        .title_case_headers(true)
        .max_headers(RESPONSE_HEADERS_MAX)
        .max_header_size(RESPONSE_HEAD_BYTES_MAX)
        .max_buf_size(RESPONSE_HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| NotSent::Connect)?;
    Ok(Connection::new(sender, driver))
}
