//! A destination over TLS, whose response a test chooses.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cloakroom::config::{Config, Ports, StaticAddresses};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub const HOST: &str = "api.psp.test";

pub struct TestDestination {
    port: u16,
    folder: TempDir,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

type Respond = Box<dyn Fn(&ReceivedRequest) -> Reply + Send>;

struct State {
    received: Vec<ReceivedRequest>,
    respond: Respond,
}

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    pub body: String,
}

#[derive(Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Default for Reply {
    fn default() -> Self {
        Self::json("{}")
    }
}

impl Reply {
    pub fn json(body: impl ToString) -> Self {
        Self {
            status: StatusCode::OK,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }
}

impl TestDestination {
    #[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
    pub async fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            received: Vec::new(),
            respond: Box::new(|_| Reply::default()),
        }));
        let task = tokio::spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            state.clone(),
        ));
        Self {
            port,
            folder,
            state,
            task,
        }
    }

    /// Allows a vault to send requests here.
    pub fn allow(&self, config: &mut Config) {
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        config.egress.static_addresses = StaticAddresses::new(vec![(HOST.to_owned(), address)]);
        config.egress.allow_private_networks = "127.0.0.0/8".parse().unwrap();
        config.egress.ports = Ports::new(vec![443, self.port]);
        config.egress.ca_file = Some(self.folder.path().join("ca.pem"));
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.port)
    }

    pub fn reply(&self, reply: Reply) {
        self.respond(move |_| reply.clone());
    }

    pub fn respond(&self, respond: impl Fn(&ReceivedRequest) -> Reply + Send + 'static) {
        self.state.lock().unwrap().respond = Box::new(respond);
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().received.clone()
    }

    /// Removes and returns the requests so far to targets that start with `prefix`.
    pub fn take(&self, prefix: &str) -> Vec<ReceivedRequest> {
        let received = &mut self.state.lock().unwrap().received;
        let is_taken = |it: &mut ReceivedRequest| it.target.starts_with(prefix);
        received.extract_if(.., is_taken).collect()
    }

    pub fn last(&self) -> ReceivedRequest {
        self.received().pop().unwrap()
    }
}

impl Drop for TestDestination {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the connection ends with the test"
)]
async fn serve(listener: TcpListener, tls: TlsAcceptor, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(|request| respond(request, state.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // A client that disconnects is no failure of the test.
            let _ = connection.await;
        });
    }
}

async fn respond(
    request: http::Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut state = state.lock().unwrap();
    let received = ReceivedRequest {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let reply = (state.respond)(&received);
    state.received.push(received);
    let mut response = Response::new(Full::new(reply.body.into()));
    *response.status_mut() = reply.status;
    for (name, value) in reply.headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    Ok(response)
}
