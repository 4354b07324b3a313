//! The server: accepts connections, bounds what each may cost, and lets go of them gently.

mod strict_heads;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse as _;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, ServerConfig, crypto::aws_lc_rs, version};
use tower::Service;

use self::strict_heads::StrictHeads;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::strict_heads::refused_from;
use crate::api::{ApiError, ClientAddr, PeerCertificates};
use crate::card_networks::{self, CardNetworks};
use crate::config::{Config, Http, Networks};

/// Operators and their probes are few.
const ADMIN_CONNECTIONS_MAX: usize = 64;
/// Directory servers are few, and keep their connections.
const RESULTS_CONNECTIONS_MAX: usize = 512;
/// Requests that one HTTP/2 connection may have open at a time.
const STREAMS_MAX: u32 = 256;
/// How often a silent HTTP/2 peer is asked whether it is still there.
const PING_PERIOD: Duration = Duration::from_secs(20);
/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that holds its address but does not answer yet.
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    tls: Option<TlsAcceptor>,
    settings: Http,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {}", reason.kind())]
    Listen {
        address: SocketAddr,
        reason: io::Error,
    },
    #[error("cannot use the certificate or key in {}", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("the certificate and the key do not make a TLS server")]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    CardNetworks(#[from] card_networks::Error),
}

impl Server {
    pub async fn bind(settings: &Http) -> Result<Self, Error> {
        let tls = match (&settings.tls_cert_file, &settings.tls_key_file) {
            (Some(cert), Some(key)) => Some(tls_acceptor(cert, key, None)?),
            _ => None,
        };
        let address = settings.listen;
        let refused = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let local_addr = listener.local_addr().map_err(refused)?;
        Ok(Self {
            listener,
            local_addr,
            tls,
            settings: settings.clone(),
        })
    }

    /// A listener for operators: the limits of the API, without TLS, and with fewer connections.
    pub async fn bind_admin(config: &Config) -> Result<Self, Error> {
        let settings = Http {
            listen: config.admin.listen,
            tls_cert_file: None,
            tls_key_file: None,
            max_connections: ADMIN_CONNECTIONS_MAX,
            ..config.http.clone()
        };
        Self::bind(&settings).await
    }

    /// A listener for directory servers, which show certificates; nothing if there is none to be.
    pub async fn bind_results(
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
            ..config.http.clone()
        };
        let server = Self::bind(&http).await?;
        Ok(Some(Self {
            tls: Some(tls_acceptor(cert, key, Some(networks.result_verifier()?))?),
            ..server
        }))
    }

    /// The address with its real port, even if the settings left the port open.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves `app` until `shutdown` ends, then lets running requests finish.
    pub async fn run(self, app: impl App, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            local_addr,
            tls,
            settings,
        } = self;
        let protocols = protocols(&settings);
        let door = Arc::new(Door {
            app,
            tls,
            protocols,
            patience: settings.header_timeout,
            trusted_proxies: settings.trusted_proxies.clone(),
        });
        let draining = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        tracing::info!(listen = %local_addr, "listening");

        loop {
            let has_room = connections.len() < settings.max_connections;
            tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, peer)) => {
                        let door = Arc::clone(&door);
                        connections.spawn(door.open(stream, peer, draining.watcher()));
                    }
                    Err(error) => pause_unless_passing(&error).await,
                },
            }
        }

        // The system refuses new connections from here on, so that clients turn to other nodes.
        drop(listener);
        drain(draining, connections, settings.drain_timeout).await;
        tracing::info!(listen = %local_addr, "stopped listening");
    }
}

/// Waits if the trouble is ours, such as too many open files; a lost caller is no reason to.
async fn pause_unless_passing(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        return;
    }
    tracing::warn!(error.kind = %error.kind(), "a connection could not be accepted");
    sleep(ACCEPT_PAUSE).await;
}

async fn drain(draining: GracefulShutdown, mut connections: JoinSet<()>, patience: Duration) {
    if timeout(patience, draining.shutdown()).await.is_err() {
        while connections.try_join_next().is_some() {}
        let count = connections.len();
        tracing::warn!(count, "connections were cut after the time to drain");
    }
    connections.shutdown().await;
}

/// Who is at the other end of a connection.
struct Peer {
    address: SocketAddr,
    certificates: PeerCertificates,
}

/// What answers requests.
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

/// What every connection passes.
struct Door<A> {
    app: A,
    tls: Option<TlsAcceptor>,
    protocols: auto::Builder<TokioExecutor>,
    patience: Duration,
    trusted_proxies: Networks,
}

impl<A: App> Door<A> {
    async fn open(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        // Answers are written whole; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            let peer = Peer {
                address: peer,
                certificates: PeerCertificates::default(),
            };
            return self.serve(stream, peer, watcher).await;
        };
        match timeout(self.patience, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates();
                let shown = shown.unwrap_or_default().iter();
                let peer = Peer {
                    address: peer,
                    certificates: PeerCertificates(
                        shown.cloned().map(|one| one.into_owned()).collect(),
                    ),
                };
                self.serve(stream, peer, watcher).await;
            }
            Ok(Err(_)) | Err(_) => metrics::counter!("tls_handshakes_failed_total").increment(1),
        }
    }

    async fn serve<I>(self: Arc<Self>, io: I, peer: Peer, watcher: Watcher)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let has_asked = Arc::new(AtomicBool::new(false));
        let service = {
            let (door, has_asked) = (Arc::clone(&self), Arc::clone(&has_asked));
            service_fn(move |mut request: Request<Incoming>| {
                has_asked.store(true, Ordering::Relaxed);
                let trusted = &door.trusted_proxies;
                let client = ClientAddr::find(peer.address.ip(), request.headers(), trusted);
                if !peer.certificates.0.is_empty() {
                    request.extensions_mut().insert(peer.certificates.clone());
                }
                answer(door.app.clone(), request, client)
            })
        };
        let connection = self
            .protocols
            .serve_connection(TokioIo::new(StrictHeads::new(io)), service)
            .into_owned();
        let mut connection = pin!(watcher.watch(connection));

        // The protocols bound the time for a head only once it is clear which of them is spoken.
        tokio::select! {
            _ = &mut connection => return,
            () = sleep(self.patience) => {}
        }
        if has_asked.load(Ordering::Relaxed) {
            // How a connection ends is the caller's affair; its requests are logged one by one.
            let _ = connection.await;
        }
    }
}

/// Answers one request, and closes the connection behind a body of unannounced length.
///
/// A proxy in front of us may disagree about where such a body ends; what follows on the same
/// connection could then be somebody else's request.
async fn answer(
    mut app: impl App,
    mut request: Request<Incoming>,
    client: ClientAddr,
) -> Result<Response<Body>, Infallible> {
    let coding = transfer_coding(request.headers());
    if coding == TransferCoding::Unknown {
        let rule = "must come with no transfer coding but chunked";
        let mut refusal = ApiError::invalid("body", rule).into_response();
        close_after(&mut refusal);
        return Ok(refusal);
    }

    request.extensions_mut().insert(client);
    let mut response = app.call(request).await?;
    if coding == TransferCoding::Chunked {
        close_after(&mut response);
    }
    Ok(response)
}

fn close_after(response: &mut Response<Body>) {
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
}

#[derive(Debug, Eq, PartialEq)]
enum TransferCoding {
    None,
    Chunked,
    Unknown,
}

fn transfer_coding(headers: &HeaderMap) -> TransferCoding {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => TransferCoding::None,
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            TransferCoding::Chunked
        }
        (Some(_), _) => TransferCoding::Unknown,
    }
}

fn protocols(settings: &Http) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(settings.max_header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(settings.max_header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_PERIOD)
        .keep_alive_timeout(settings.header_timeout);
    builder
}

/// TLS 1.2 and 1.3 with authenticated ciphers only, which is all that the library has.
///
/// With a verifier, clients must show a certificate that it accepts.
fn tls_acceptor(
    cert: &Path,
    key: &Path,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<TlsAcceptor, Error> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| Error::Pem {
            path: cert.to_owned(),
            source,
        })?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|source| Error::Pem {
        path: key.to_owned(),
        source,
    })?;

    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
