//! A receiver of events: an HTTPS server on this machine, with a script of responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use cloakroom::config::{Config, Ports, StaticAddresses};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

const HOST: &str = "hooks.example.com";

/// A received request.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
    pub(super) body: Value,
    /// Whether the response is a success.
    pub(super) is_accepted: bool,
}

impl Received {
    pub(super) fn event(&self) -> &Value {
        &self.body["event"]
    }

    pub(super) fn event_type(&self) -> &str {
        self.event()["type"].as_str().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// How the endpoint responds to a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behavior {
    Status(u16),
    /// Responds with 200 after this time.
    Slow(Duration),
    /// Redirects to another path of the endpoint.
    Redirect,
}

/// What requests share.
struct Shared {
    received: Mutex<Vec<Received>>,
    script: Mutex<VecDeque<Behavior>>,
    /// After the end of the script.
    default: Mutex<Behavior>,
}

pub(super) struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    folder: TempDir,
    server: JoinSet<()>,
}

impl Endpoint {
    pub(super) async fn start() -> Self {
        let generated = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), generated.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![generated.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            received: Mutex::default(),
            script: Mutex::default(),
            default: Mutex::new(Behavior::Status(200)),
        });
        let address = listener.local_addr().unwrap();
        let mut server = JoinSet::new();
        server.spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            shared.clone(),
        ));
        Self {
            address,
            shared,
            folder,
            server,
        }
    }

    /// Allows the vault to reach the endpoint.
    pub(super) fn configure(&self, config: &mut Config) {
        let egress = &mut config.egress;
        egress.ports = Ports::new(vec![self.address.port()]);
        egress.static_addresses = StaticAddresses::new(vec![(HOST.to_owned(), self.address.ip())]);
        egress.allow_private_networks = "127.0.0.0/8".parse().unwrap();
        egress.ca_file = Some(self.ca_file());
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub(super) fn url(&self) -> String {
        format!("https://{HOST}:{}/hooks?tenant=a", self.address.port())
    }

    /// The responses to the next requests.
    pub(super) fn script(&self, behaviors: impl IntoIterator<Item = Behavior>) {
        self.shared.script.lock().unwrap().extend(behaviors);
    }

    /// The response to all requests after the script.
    pub(super) fn respond(&self, behavior: Behavior) {
        *self.shared.default.lock().unwrap() = behavior;
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.shared.received.lock().unwrap().len()
    }

    /// Stops the server: connections are refused from now on.
    pub(super) async fn stop(&mut self) {
        self.server.shutdown().await;
    }

    /// Waits for this many requests.
    pub(super) async fn wait_for(&self, count: usize) -> Vec<Received> {
        for _ in 0..600 {
            if self.count() >= count {
                return self.received();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} of {count} requests arrived", self.count())
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, shared) = (tls.clone(), shared.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| respond(request, shared.clone()));
            let connection = hyper::server::conn::http1::Builder::new();
            // Canceled attempts close their connections.
            let _ignored = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await;
    let bytes = bytes.map_or(Bytes::new(), |body| body.to_bytes());
    let behavior = shared.script.lock().unwrap().pop_front();
    let behavior = behavior.unwrap_or(*shared.default.lock().unwrap());
    let received = Received {
        method: head.method,
        path: head.uri.to_string(),
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        bytes: bytes.to_vec(),
        is_accepted: !matches!(behavior, Behavior::Status(300..) | Behavior::Redirect),
    };
    shared.received.lock().unwrap().push(received);
    let response = Response::builder();
    let response = match behavior {
        Behavior::Status(status) => response.status(status),
        Behavior::Slow(delay) => {
            tokio::time::sleep(delay).await;
            response
        }
        Behavior::Redirect => response.status(307).header("location", "/other"),
    };
    Ok(response.body(Full::from("{}")).unwrap())
}
