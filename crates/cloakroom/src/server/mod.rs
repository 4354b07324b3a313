//! HTTP server: accepts connections, limits the resources of each, and drains them at shutdown.

mod body;
mod capacity;
mod connection;
mod streams;
mod strict_heads;
mod tls;
mod usage;
mod write_deadline;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use cloakroom_platform::certificates::{self, Certificate};
use cloakroom_platform::config::{Config, Http};
use cloakroom_threeds::networks::{self, CardNetworks};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls;
use tower::Service;

use self::capacity::{Capacity, ConnectionRejections};
use self::connection::Connections;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::strict_heads::rejected_from;
use self::tls::Tls;
use self::usage::{Limits, Usage};
use crate::admin::Readiness;

/// Names of the certificates in logs and metrics.
pub(crate) const API_CERTIFICATE: &str = "http";
pub(crate) const RESULTS_CERTIFICATE: &str = "threeds_results";
/// Operators and their probes have few connections.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// Directory servers are few, and reuse their connections.
const RESULTS_CONNECTIONS_MAX: usize = 512;
/// A directory server may have several machines behind one address, each with some connections.
const RESULTS_CONNECTIONS_PER_ADDRESS: usize = 256;
/// Delay after the system could not accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// A bound listener that does not accept connections yet.
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    tls: Option<Tls>,
    settings: Http,
    /// Updated when the listener has no capacity for further connections.
    readiness: Option<Readiness>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {}", reason.kind())]
    Listen {
        address: SocketAddr,
        reason: io::Error,
    },
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
    #[error("TLS is not available")]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    CardNetworks(#[from] networks::Error),
}

impl Server {
    pub async fn bind(settings: &Http) -> Result<Self, Error> {
        let tls = match (&settings.tls_cert_file, &settings.tls_key_file) {
            (Some(cert), Some(key)) => Some(Tls::new(
                Certificate::load(API_CERTIFICATE, cert, key)?,
                None,
            )?),
            _ => None,
        };
        let address = settings.listen;
        let failed = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            local_addr,
            tls,
            settings: settings.clone(),
            readiness: None,
        })
    }

    /// Makes the node unready while this listener is full.
    #[must_use]
    pub fn with_readiness(mut self, readiness: &Readiness) -> Self {
        self.readiness = Some(readiness.clone());
        self
    }

    /// A listener for operators: the limits of the API, without TLS, and with fewer connections.
    pub async fn bind_admin(config: &Config) -> Result<Self, Error> {
        let settings = Http {
            listen: config.admin.listen,
            tls_cert_file: None,
            tls_key_file: None,
            max_connections: ADMIN_CONNECTIONS_MAX,
            // Probes and scrapers share the address of a proxy on this host.
            max_connections_per_address: Some(ADMIN_CONNECTIONS_MAX),
            ..config.http.clone()
        };
        Self::bind(&settings).await
    }

    /// A listener for directory servers, which present client certificates; `None` if not
    /// configured.
    pub async fn bind_threeds_results(
        config: &Config,
        networks: &CardNetworks,
    ) -> Result<Option<Self>, Error> {
        let settings = &config.threeds;
        let (Some(listen), Some(cert), Some(key)) = (
            settings.results_listen,
            &settings.results_cert_file,
            &settings.results_key_file,
        ) else {
            return Ok(None);
        };
        let http = Http {
            listen,
            tls_cert_file: None,
            tls_key_file: None,
            max_connections: RESULTS_CONNECTIONS_MAX,
            max_connections_per_address: Some(RESULTS_CONNECTIONS_PER_ADDRESS),
            ..config.http.clone()
        };
        let certificate = Certificate::load(RESULTS_CERTIFICATE, cert, key)?;
        let tls = Tls::new(certificate, Some(networks.result_verifier()?))?;
        let server = Self::bind(&http).await?;
        Ok(Some(Self {
            tls: Some(tls),
            ..server
        }))
    }

    /// The bound address, with its actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves `app` until `shutdown` completes, then lets running requests finish.
    pub async fn run(self, app: impl App, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            local_addr,
            tls,
            settings,
            readiness,
        } = self;
        let (tls, certificate) = tls.map(|tls| (tls.acceptor, tls.certificate)).unzip();
        let mut watcher = JoinSet::new();
        watcher.spawn(certificates::watch(certificate.into_iter().collect()));
        let usage = Usage::new(Limits::of(&settings));
        let max_connections = settings.max_connections;
        let drain_timeout = settings.drain_timeout;
        let trusted_proxies = settings.trusted_proxies.clone();
        let server = Arc::new(Connections {
            app,
            tls,
            settings,
            usage: Arc::clone(&usage),
        });
        let (drain_signal, draining) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut capacity = Capacity::new(readiness, max_connections);
        let mut rejections = ConnectionRejections::default();
        let mut shutdown = pin!(shutdown);
        tracing::info!(listen = %local_addr, "listening");

        loop {
            let is_available = capacity.is_available(connections.len());
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if is_available => match accepted {
                    Ok((stream, peer)) => {
                        let is_proxy = trusted_proxies.contain(peer.ip());
                        match usage.of(peer.ip()).connect(is_proxy) {
                            Some(slot) => {
                                let server = Arc::clone(&server);
                                connections.spawn(server.serve(stream, peer, slot, draining.clone()));
                            }
                            None => rejections.record(peer),
                        }
                    }
                    Err(error) => wait_after_local_error(&error).await,
                },
            }
        }

        // From here on the system rejects new connections, so that clients use other nodes.
        drop(listener);
        drain_signal.send_replace(true);
        drain(connections, drain_timeout).await;
        tracing::info!(listen = %local_addr, "stopped listening");
    }
}

/// Waits after a local error, such as too many open files; an aborted connection is not one.
async fn wait_after_local_error(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        return;
    }
    tracing::warn!(error.kind = %error.kind(), "a connection could not be accepted");
    sleep(ACCEPT_RETRY_DELAY).await;
}

/// Waits until every connection has completed its running requests, and closes those that take too
/// long.
async fn drain(mut connections: JoinSet<()>, drain_timeout: Duration) {
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(drain_timeout, all_ended).await.is_err() {
        let count = connections.len();
        tracing::warn!(count, "connections were closed after the drain timeout");
    }
    connections.shutdown().await;
}

/// A service that responds to requests.
pub trait App:
    Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> App for S where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

#[cfg(test)]
mod tests;
