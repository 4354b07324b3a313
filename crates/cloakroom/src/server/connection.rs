//! One connection: its protocol, its requests, and when it is closed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse as _;
use cloakroom_platform::api::{ApiError, ClientAddr, PeerCertificates, SharedBody, StreamedBody};
use cloakroom_platform::config::{BaseUrl, Http};
use cloakroom_platform::telemetry::ClientAddress;
use cloakroom_platform::telemetry::catalog;
use http::{Extensions, HeaderMap, HeaderValue, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::App;
use super::body::{BodyMemory, paced};
use super::streams::StreamExecutor;
use super::strict_heads::StrictHeads;
use super::usage::{Client, ConnectionSlot, ConnectionUsage, Usage};
use super::write_deadline::WriteDeadline;

/// How often a silent HTTP/2 peer is pinged.
const PING_PERIOD: Duration = Duration::from_secs(20);
/// Flow-control windows of HTTP/2 request bodies, per connection and per stream.
const CONNECTION_WINDOW: u32 = 256 * 1024;
const STREAM_WINDOW: u32 = 128 * 1024;
/// Bytes that HTTP/2 buffers of a response before the client has window for them.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// Two years, as required by the preload lists of browsers.
const TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Serves the connections of one listener.
pub(super) struct Connections<A> {
    pub(super) app: A,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) settings: Http,
    pub(super) usage: Arc<Usage>,
}

/// The other end of a connection.
struct Peer {
    address: SocketAddr,
    certificates: PeerCertificates,
    slot: ConnectionSlot,
}

impl<A: App> Connections<A> {
    /// Serves one connection until it is closed. Once `draining` is set, it is closed after its
    /// running requests.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        slot: ConnectionSlot,
        draining: watch::Receiver<bool>,
    ) {
        // Responses are written whole; Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let mut peer = Peer {
            address,
            certificates: PeerCertificates::default(),
            slot,
        };
        let Some(tls) = &self.tls else {
            return self.serve_http(stream, peer, draining).await;
        };
        match timeout(self.settings.header_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let certificates = stream.get_ref().1.peer_certificates();
                let certificates = certificates.unwrap_or_default().iter();
                let certificates = certificates.cloned().map(|one| one.into_owned());
                peer.certificates = PeerCertificates(certificates.collect());
                self.serve_http(stream, peer, draining).await;
            }
            Ok(Err(_)) | Err(_) => catalog::TLS_HANDSHAKES_FAILED.increment(1),
        }
    }

    async fn serve_http<I>(self: Arc<Self>, io: I, peer: Peer, mut draining: watch::Receiver<bool>)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let settings = &self.settings;
        let usage = ConnectionUsage::new();
        let client = Arc::new(Client {
            connection: Arc::clone(&usage),
            address: peer.slot.address(),
        });
        let service = {
            let connections = Arc::clone(&self);
            service_fn(move |mut request: Request<Incoming>| {
                client
                    .connection
                    .record_request(request.version() == Version::HTTP_2);
                if !peer.certificates.0.is_empty() {
                    request.extensions_mut().insert(peer.certificates.clone());
                }
                let trusted = &connections.settings.trusted_proxies;
                let address = ClientAddr::find(peer.address.ip(), request.headers(), trusted);
                let client = connections.client_of(&client, peer.address, address);
                Arc::clone(&connections).respond(request, address, client)
            })
        };
        let io = WriteDeadline::new(StrictHeads::new(io), settings.write_timeout);
        let protocols = protocols(settings, &usage);
        let mut connection = pin!(protocols.serve_connection(TokioIo::new(io), service));

        // The protocols enforce the header timeout only once the protocol is known.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = shutdown_started(&mut draining) => {}
            () = sleep(settings.header_timeout) => {
                if !usage.has_request() {
                    return;
                }
                tokio::select! {
                    // How a connection ends is not logged; its requests are logged one by one.
                    _ = connection.as_mut() => return,
                    () = shutdown_started(&mut draining) => {}
                    () = usage.expired(settings.idle_timeout, settings.max_connection_age) => {}
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(settings.drain_timeout, connection).await;
    }

    /// The client whose unsent bytes the response counts toward.
    ///
    /// Behind a trusted proxy, this is the client that the proxy names.
    fn client_of(&self, peer: &Arc<Client>, proxy: SocketAddr, client: ClientAddr) -> Arc<Client> {
        if proxy.ip().to_canonical() == client.0 {
            return Arc::clone(peer);
        }
        Arc::new(Client {
            connection: Arc::clone(&peer.connection),
            address: self.usage.of(client.0),
        })
    }

    /// Responds to one request, and closes the connection after a body of unannounced length.
    ///
    /// A proxy in front of this node may disagree about where such a body ends; the bytes that
    /// follow on the same connection could then be another client's request.
    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        address: ClientAddr,
        client: Arc<Client>,
    ) -> Result<Response<Body>, Infallible> {
        let coding = transfer_coding(request.headers());
        request.extensions_mut().insert(address);
        request.extensions_mut().insert(ClientAddress(address.0));
        let mut response = if coding == TransferCoding::Unknown {
            let rule = "must use no transfer coding other than chunked";
            ApiError::invalid("body", rule).into_response()
        } else if client.admit(self.settings.write_timeout).await {
            self.app.clone().call(request).await?
        } else {
            catalog::HTTP_UNREAD_REJECTED.increment(1);
            let detail =
                "Too many responses are waiting to be read by the client. Read them, then retry.";
            ApiError::unavailable("unread_responses", detail).into_response()
        };
        let is_old = client
            .connection
            .is_older_than(self.settings.max_connection_age);
        if coding != TransferCoding::None || is_old {
            close_after(&mut response);
        }
        self.add_security_headers(response.headers_mut());
        let memory = memory_of(response.extensions());
        Ok(response.map(|body| paced(body, &client, memory)))
    }

    /// Adds the security headers of every response.
    fn add_security_headers(&self, headers: &mut HeaderMap) {
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        let base_url = self.settings.base_url.as_ref();
        if self.tls.is_some() || base_url.is_some_and(BaseUrl::is_https) {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, TRANSPORT_SECURITY);
        }
    }
}

fn memory_of(extensions: &Extensions) -> BodyMemory {
    if extensions.get::<SharedBody>().is_some() {
        BodyMemory::Shared
    } else if extensions.get::<StreamedBody>().is_some() {
        BodyMemory::Streamed
    } else {
        BodyMemory::Owned
    }
}

/// Completes when the node starts to shut down.
async fn shutdown_started(draining: &mut watch::Receiver<bool>) {
    // An error means that the server has been dropped, which closes its connections as well.
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// Closes an HTTP/1.1 connection after this response; HTTP/2 has no such header.
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

fn protocols(settings: &Http, usage: &Arc<ConnectionUsage>) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor {
        usage: Arc::clone(usage),
        write_timeout: settings.write_timeout,
    });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(settings.max_header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(settings.max_header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(u32::try_from(settings.max_streams).unwrap_or(u32::MAX))
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_stream_window_size(STREAM_WINDOW)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(PING_PERIOD)
        .keep_alive_timeout(settings.header_timeout);
    builder
}
