//! A server outside of the cluster: the destination of proxied requests and the endpoint of a webhook.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

/// The server name, which nodes resolve by their configuration.
pub(crate) const NAME: &str = "receiver.cloakroom.internal";
pub(crate) const PORT: u16 = 8444;

/// The header that identifies a proxied request.
pub(crate) const REQUEST_HEADER: &str = "x-request";

/// What has arrived so far.
#[derive(Default)]
pub(crate) struct Received {
    /// Bodies of proxied requests, by request.
    pub(crate) proxied: HashMap<String, Vec<String>>,
    /// Deliveries of each event, by type and token.
    pub(crate) events: HashMap<(String, Uuid), HashMap<Uuid, u64>>,
}

/// The running server; it stops when it is dropped.
pub(crate) struct Receiver {
    state: Arc<State>,
    _server: JoinSet<()>,
}

#[derive(Default)]
struct State {
    received: Mutex<Received>,
    /// Whether the webhook endpoint is unavailable.
    is_failing: AtomicBool,
}

impl State {
    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    /// Starts on `address`, with `server.crt` and `server.key` of a folder.
    pub(crate) async fn start(address: &str, folder: &Path) -> Result<Self> {
        let address: SocketAddr = format!("{address}:{PORT}").parse()?;
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let tls = TlsAcceptor::from(Arc::new(tls(folder)?));
        let state = Arc::new(State::default());
        let mut server = JoinSet::new();
        server.spawn(accept(listener, tls, state.clone()));
        Ok(Self {
            state,
            _server: server,
        })
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.state.received()
    }

    /// Makes the webhook endpoint unavailable or available.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.state.is_failing.store(is_failing, Ordering::Relaxed);
    }
}

fn tls(folder: &Path) -> Result<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(folder.join("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key"))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    Ok(ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?)
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            Ok((stream, _)) = listener.accept() => {
                let (tls, state) = (tls.clone(), state.clone());
                connections.spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(|request| respond(&state, request));
                    // A connection that a fault interrupts is repeated by the node.
                    let _interrupted = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        }
    }
}

async fn respond(
    state: &State,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let status = match head.uri.path() {
        "/proxied" => state.record_proxied(&head.headers, &body),
        "/events" => state.record_event(&body),
        _ => StatusCode::NOT_FOUND,
    };
    let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
    *response.status_mut() = status;
    Ok(response)
}

impl State {
    fn record_proxied(&self, headers: &http::HeaderMap, body: &[u8]) -> StatusCode {
        let name = headers.get(REQUEST_HEADER);
        let Some(name) = name.and_then(|name| name.to_str().ok()) else {
            return StatusCode::BAD_REQUEST;
        };
        let body = String::from_utf8_lossy(body).into_owned();
        let mut received = self.received();
        let bodies = received.proxied.entry(name.to_owned()).or_default();
        bodies.push(body);
        StatusCode::OK
    }

    fn record_event(&self, body: &[u8]) -> StatusCode {
        if self.is_failing.load(Ordering::Relaxed) {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let id = |pointer: &str| text(pointer).and_then(|id| id.parse::<Uuid>().ok());
        let (Some(event), Some(token)) = (id("/event/id"), id("/event/data/token/id")) else {
            return StatusCode::BAD_REQUEST;
        };
        let kind = text("/event/type").unwrap_or_default().to_owned();
        let mut received = self.received();
        let events = received.events.entry((kind, token)).or_default();
        *events.entry(event).or_default() += 1;
        StatusCode::NO_CONTENT
    }
}
