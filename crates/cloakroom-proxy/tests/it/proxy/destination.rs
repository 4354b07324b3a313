//! A destination: an HTTPS server that records what it receives.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The name in the certificate, which the vault under test resolves to the loopback address.
pub(super) const HOST: &str = "psp.example.com";

/// A request as the destination received it.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

type Respond = dyn Fn(&Received) -> Response<Body> + Send + Sync;

/// How the destination responds.
#[derive(Clone)]
pub(super) enum Behavior {
    /// With this response, after the whole request.
    Respond(Arc<Respond>),
    /// With these bytes instead of HTTP, after the head of the request; then it closes the connection.
    Raw(&'static [u8]),
    /// Never, although it accepts the request.
    Silent,
    /// After it has counted the bytes of the body, without recording them.
    Count,
}

impl Behavior {
    /// 200 with a JSON body.
    pub(super) fn ok() -> Self {
        Self::respond(|_| {
            let response = Response::builder().header("content-type", "application/json");
            response.body(Body::from(r#"{"approved":true}"#)).unwrap()
        })
    }

    pub(super) fn respond(
        respond: impl Fn(&Received) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        Self::Respond(Arc::new(respond))
    }
}

pub(super) struct Destination {
    pub(super) address: SocketAddr,
    pub(super) ca_file: PathBuf,
    state: Arc<State>,
    _folder: TempDir,
    task: JoinHandle<()>,
}

struct State {
    behavior: Behavior,
    received: Mutex<Vec<Received>>,
    connections: AtomicU64,
    counted: AtomicU64,
}

impl Destination {
    #[expect(
        clippy::disallowed_methods,
        reason = "the task ends when the test drops the destination"
    )]
    pub(super) async fn start(behavior: Behavior) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, cert.pem()).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            behavior,
            received: Mutex::default(),
            connections: AtomicU64::new(0),
            counted: AtomicU64::new(0),
        });
        let task = tokio::spawn(serve(listener, acceptor, Arc::clone(&state)));
        Self {
            address,
            ca_file,
            state,
            _folder: folder,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{HOST}:{}", self.address.port())
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// The only request that was received.
    pub(super) fn only(&self) -> Received {
        let received = self.received();
        assert_eq!(received.len(), 1);
        received[0].clone()
    }

    pub(super) fn last(&self) -> Received {
        self.received().pop().unwrap()
    }

    pub(super) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that were counted instead of recorded.
    pub(super) fn counted(&self) -> u64 {
        self.state.counted.load(Ordering::Relaxed)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "connections end with the runtime of the test"
)]
async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::Relaxed);
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_connection(stream, state).await;
            }
        });
    }
}

async fn serve_connection(mut stream: TlsStream<TcpStream>, state: Arc<State>) {
    if let Behavior::Raw(bytes) = state.behavior {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        return;
    }
    let service = service_fn(move |request| respond(Arc::clone(&state), request));
    let connection = hyper::server::conn::http1::Builder::new();
    let _ = connection
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, mut body) = request.into_parts();
    let mut received = Received {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body: Bytes::new(),
    };
    if let Behavior::Count = state.behavior {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.into_data().map_or(0, |data| data.len() as u64);
            state.counted.fetch_add(length, Ordering::Relaxed);
        }
    } else {
        match body.collect().await {
            Ok(collected) => received.body = collected.to_bytes(),
            // An incomplete request is none.
            Err(_) => return Ok(Response::new(Body::empty())),
        }
    }
    state.received.lock().unwrap().push(received.clone());
    match &state.behavior {
        Behavior::Respond(respond) => Ok(respond(&received)),
        Behavior::Count => Ok(Response::new(Body::empty())),
        Behavior::Silent | Behavior::Raw(_) => std::future::pending().await,
    }
}
