//! The server over real sockets: TLS, limits, draining and request smuggling.

mod draining;
mod heads;
mod stalls;
mod tls;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::routing::any;
use bytes::Bytes;
use cloakroom_platform::api::ClientAddr;
use hyper::body::Frame;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;

const REQUEST: &str = "GET /peer HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
/// More than the socket buffers of this machine hold for a client that does not read.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
const KEEP_ALIVE_REQUEST: &str = "GET /peer HTTP/1.1\r\nhost: h\r\n\r\n";

#[tokio::test]
async fn handlers_receive_the_client_address() {
    let node = Node::start(settings()).await;
    let mut stream = node.connect().await;
    let local = stream.local_addr().unwrap();

    let response = exchange(&mut stream, REQUEST).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with(&local.ip().to_string()), "{response}");
    assert!(response.contains("x-content-type-options: nosniff\r\n"));
    assert!(
        !response.contains("strict-transport-security"),
        "{response}"
    );
}

#[tokio::test]
async fn http2_works_without_tls() {
    let node = Node::start(settings()).await;

    assert_eq!(open_http2(&mut node.connect().await).await, 4);
}

#[tokio::test]
async fn address_in_use_is_named_in_the_error() {
    let node = Node::start(settings()).await;

    let error = Server::bind(&Http {
        listen: node.address,
        ..settings()
    })
    .await
    .err()
    .unwrap();

    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}: address in use", node.address)
    );
}

#[tokio::test]
async fn connections_above_the_limit_wait() {
    let node = Node::start(Http {
        max_connections: 1,
        ..settings()
    })
    .await;
    let mut first = node.connect().await;
    let response = send_request(&mut first, KEEP_ALIVE_REQUEST).await;
    let mut second = node.connect().await;
    second
        .write_all(KEEP_ALIVE_REQUEST.as_bytes())
        .await
        .unwrap();

    let mut byte = [0];
    let waits = timeout(Duration::from_millis(50), second.read(&mut byte))
        .await
        .is_err();
    drop(first);
    let served = timeout(Duration::from_secs(2), second.read(&mut byte)).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(waits);
    assert!(matches!(served, Ok(Ok(1))));
}

/// A server on a free port, with a handler that can be paused.
struct Node {
    address: SocketAddr,
    started: Arc<Notify>,
    released: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Node {
    async fn start(settings: Http) -> Self {
        Self::start_with(settings, &Readiness::new(&[])).await
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "these routes exist only in this test"
    )]
    async fn start_with(settings: Http, readiness: &Readiness) -> Self {
        let (started, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (started, released) = (Arc::clone(&started), Arc::clone(&released));
            async move || {
                started.notify_one();
                released.notified().await;
                "done"
            }
        };
        let peer = async |request: Request| {
            let ClientAddr(peer) = *request.extensions().get().unwrap();
            peer.to_string()
        };
        let large = Bytes::from(vec![b'x'; LARGE_BYTES]);
        let app = Router::new()
            .route("/peer", any(peer))
            .route("/large", any(async move || large))
            .route("/pausing", any(async || Body::new(PausingBody::default())))
            .route("/slow", any(slow));

        let server = Server::bind(&settings).await.unwrap();
        let server = server.with_readiness(readiness);
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(app, async { drop(stopped.await) }));
        Self {
            address,
            started,
            released,
            stop: Some(stop),
            running,
        }
    }

    fn stop(&mut self) {
        drop(self.stop.take());
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn connect_tls(
        &self,
        root: &CertificateDer<'static>,
        protocol: &str,
    ) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(root.clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let stream = self.connect().await;
        let stream = connector
            .connect("localhost".try_into().unwrap(), stream)
            .await
            .unwrap();
        assert_eq!(
            stream.get_ref().1.alpn_protocol(),
            Some(protocol.as_bytes())
        );
        stream
    }
}

fn settings() -> Http {
    Http {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..Http::default()
    }
}

/// Sends a request, and reads until the server closes the connection.
async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    // A server that rejects early may close before it has read everything.
    let _ = stream.write_all(request.as_bytes()).await;
    read_all(stream).await
}

/// Sends a request, and reads the first part of the response.
async fn send_request(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut chunk = [0; 4096];
    let count = stream.read(&mut chunk).await.unwrap();
    String::from_utf8_lossy(&chunk[..count]).into_owned()
}

async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset ends a connection as well as a close does.
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens HTTP/2 and returns the type of the first frame that the server sends.
async fn open_http2(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> u8 {
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    frame[3]
}

/// A body whose source pauses between its two parts.
#[derive(Default)]
struct PausingBody {
    parts: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl PausingBody {
    const PAUSE: Duration = Duration::from_secs(2);
}

impl HttpBody for PausingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.parts == 1 {
            let pause = self
                .pause
                .get_or_insert_with(|| Box::pin(sleep(Self::PAUSE)));
            ready!(pause.as_mut().poll(context));
        }
        self.parts += 1;
        let part = || Ok(Frame::data(Bytes::from_static(b"part")));
        Poll::Ready((self.parts <= 2).then(part))
    }
}
