//! The server over real sockets: TLS, limits, draining and requests that parsers disagree about.

use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;

const ASK: &str = "GET /peer HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
const ASK_AND_STAY: &str = "GET /peer HTTP/1.1\r\nhost: h\r\n\r\n";

#[tokio::test]
async fn a_handler_knows_the_peer() {
    let node = Node::start(settings()).await;
    let mut stream = node.connect().await;
    let local = stream.local_addr().unwrap();

    let answer = ask(&mut stream, ASK).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(&local.ip().to_string()), "{answer}");
}

#[tokio::test]
async fn tls_serves_both_protocols() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert_file, key_file) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    let (tls_cert_file, tls_key_file) = (Some(cert_file), Some(key_file));
    let node = Node::start(Http {
        tls_cert_file,
        tls_key_file,
        ..settings()
    })
    .await;

    let mut first = node.connect_tls(cert.der(), "http/1.1").await;
    let answer = ask(&mut first, ASK).await;
    let mut second = node.connect_tls(cert.der(), "h2").await;
    let settings_frame = greet(&mut second).await;
    let mut plain = node.connect().await;
    let refusal = ask(&mut plain, ASK).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(
        settings_frame, 4,
        "the first frame of an HTTP/2 server holds its settings"
    );
    assert!(!refusal.contains("HTTP/1.1"), "{refusal}");
}

#[tokio::test]
async fn http2_is_spoken_without_tls_too() {
    let node = Node::start(settings()).await;

    assert_eq!(greet(&mut node.connect().await).await, 4);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_is_named() {
    let missing = Some(PathBuf::from("/nowhere/cert.pem"));
    let settings = Http {
        tls_cert_file: missing.clone(),
        tls_key_file: missing,
        ..settings()
    };

    let error = Server::bind(&settings).await.err().unwrap().to_string();

    assert_eq!(
        error,
        "cannot use the certificate or key in /nowhere/cert.pem"
    );
}

#[tokio::test]
async fn an_address_in_use_is_named() {
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
async fn draining_finishes_what_runs_and_takes_nothing_new() {
    let mut node = Node::start(settings()).await;
    let mut slow = node.connect().await;
    slow.write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.begun.notified().await;
    let mut idle = node.connect().await;

    node.stop();
    let silence = read_all(&mut idle).await;
    let refused = TcpStream::connect(node.address).await.is_err();
    let still_running = !node.running.is_finished();
    node.released.notify_one();
    let answer = read_all(&mut slow).await;
    let ended = timeout(Duration::from_secs(2), &mut node.running).await;

    assert_eq!(silence, "");
    assert!(refused);
    assert!(still_running);
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("done"),
        "{answer}"
    );
    assert!(ended.is_ok());
}

#[tokio::test]
async fn draining_ends_even_if_a_request_does_not() {
    let drain_timeout = Duration::from_millis(50);
    let mut node = Node::start(Http {
        drain_timeout,
        ..settings()
    })
    .await;
    let mut stuck = node.connect().await;
    stuck
        .write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.begun.notified().await;

    node.stop();
    let ended = timeout(Duration::from_secs(2), &mut node.running).await;

    assert!(ended.is_ok());
    assert_eq!(read_all(&mut stuck).await, "");
}

#[tokio::test]
async fn slow_heads_are_cut() {
    let header_timeout = Duration::from_millis(200);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let beginnings = [
        "",
        "G",
        "GET /peer HTTP/1.1\r\nhost: h\r\nx-a: b",
        "PRI * HTTP",
        "PRI",
    ];
    for beginning in beginnings {
        let mut stream = node.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();

        let begun = Instant::now();
        let answer = read_all(&mut stream).await;

        assert!(begun.elapsed() < Duration::from_secs(2), "{beginning:?}");
        assert!(!answer.contains("200 OK"), "{beginning:?}: {answer}");
    }
}

#[tokio::test]
async fn a_slow_second_head_is_cut_too() {
    let header_timeout = Duration::from_millis(200);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let mut stream = node.connect().await;
    let answer = ask_once(&mut stream, ASK_AND_STAY).await;
    stream
        .write_all(b"GET /peer HTTP/1.1\r\nx-a: b")
        .await
        .unwrap();

    let begun = Instant::now();
    let rest = read_all(&mut stream).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(rest, "");
}

#[tokio::test]
async fn a_connection_outlives_the_time_for_its_head() {
    let header_timeout = Duration::from_millis(50);
    let node = Node::start(Http {
        header_timeout,
        ..settings()
    })
    .await;
    let mut stream = node.connect().await;
    stream
        .write_all(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    node.begun.notified().await;

    tokio::time::sleep(3 * header_timeout).await;
    node.released.notify_one();
    let answer = read_all(&mut stream).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn large_heads_are_refused() {
    let node = Node::start(settings()).await;
    let mut stream = node.connect().await;
    let head = format!(
        "GET /peer HTTP/1.1\r\nhost: h\r\nx-a: {}\r\n\r\n",
        "a".repeat(17_000)
    );

    let answer = ask(&mut stream, &head).await;

    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn connections_above_the_cap_wait() {
    let node = Node::start(Http {
        max_connections: 1,
        ..settings()
    })
    .await;
    let mut first = node.connect().await;
    let answer = ask_once(&mut first, ASK_AND_STAY).await;
    let mut second = node.connect().await;
    second.write_all(ASK_AND_STAY.as_bytes()).await.unwrap();

    let mut byte = [0];
    let waits = timeout(Duration::from_millis(50), second.read(&mut byte))
        .await
        .is_err();
    drop(first);
    let served = timeout(Duration::from_secs(2), second.read(&mut byte)).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(waits);
    assert!(matches!(served, Ok(Ok(1))));
}

#[tokio::test]
async fn what_parsers_disagree_about_cannot_carry_a_second_request() {
    let smuggled = ASK;
    let cases = [
        // Accepted; the connection ends there.
        ("transfer-encoding: chunked", "0\r\n\r\n", "200"),
        // Refused.
        (
            "content-length: 100\r\ntransfer-encoding: chunked",
            "0\r\n\r\n",
            "400",
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: 5",
            "0\r\n\r\n",
            "400",
        ),
        ("content-length: 1\r\ncontent-length: 1", "a", "400"),
        ("x-a: b\nx-c: d", "", "400"),
        ("host: other", "", "400"),
        ("transfer-encoding: gzip, chunked", "0\r\n\r\n", "400"),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            "0\r\n\r\n",
            "400",
        ),
        ("transfer-encoding: identity", "", "400"),
        ("transfer-encoding:\x0bchunked", "0\r\n\r\n", "400"),
        ("content-length: 1\r\ncontent-length: 2", "a", "400"),
        ("content-length: +1", "a", "400"),
        ("content-length: 1, 1", "a", "400"),
        ("x-a: b\r\n c: d", "", "400"),
        ("x-a : b", "", "400"),
    ];
    for (headers, body, status) in cases {
        let node = Node::start(settings()).await;
        let mut stream = node.connect().await;
        let request =
            format!("POST /peer HTTP/1.1\r\nhost: h\r\n{headers}\r\n\r\n{body}{smuggled}");

        let answer = ask(&mut stream, &request).await;

        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{headers:?}: {answer}"
        );
        assert_eq!(
            answer.matches("HTTP/1.1").count(),
            1,
            "{headers:?}: {answer}"
        );
    }
}

/// A server on a free port, with a handler that can be held.
struct Node {
    address: SocketAddr,
    begun: Arc<Notify>,
    released: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Node {
    #[expect(
        clippy::disallowed_methods,
        reason = "these routes exist in this test alone"
    )]
    async fn start(settings: Http) -> Self {
        let (begun, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (begun, released) = (Arc::clone(&begun), Arc::clone(&released));
            async move || {
                begun.notify_one();
                released.notified().await;
                "done"
            }
        };
        let peer = async |request: Request| {
            let ClientAddr(peer) = *request.extensions().get().unwrap();
            peer.to_string()
        };
        let app = Router::new()
            .route("/peer", any(peer))
            .route("/slow", any(slow));

        let server = Server::bind(&settings).await.unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(app, async { drop(stopped.await) }));
        Self {
            address,
            begun,
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

/// Sends a request, and reads until the server closes.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(request.as_bytes()).await;
    read_all(stream).await
}

/// Sends a request, and reads what comes first.
async fn ask_once(stream: &mut TcpStream, request: &str) -> String {
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
async fn greet(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> u8 {
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    frame[3]
}
