//! HTTP/1.1 and HTTP/2 over TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cloakroom_platform::config::Http;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{KEEP_ALIVE_REQUEST, Node, REQUEST, exchange, open_http2, settings};
use crate::server::Server;

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
    let response = exchange(&mut first, REQUEST).await;
    let mut second = node.connect_tls(cert.der(), "h2").await;
    let settings_frame = open_http2(&mut second).await;
    let mut plain = node.connect().await;
    let plain_response = exchange(&mut plain, REQUEST).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert_eq!(
        settings_frame, 4,
        "the first frame of an HTTP/2 server holds its settings"
    );
    assert!(!plain_response.contains("HTTP/1.1"), "{plain_response}");
    let strict = "strict-transport-security: max-age=63072000\r\n";
    assert!(response.contains(strict), "{response}");
}

#[tokio::test]
async fn unreadable_certificate_is_named_in_the_error() {
    let missing = Some(PathBuf::from("/nowhere/cert.pem"));
    let settings = Http {
        tls_cert_file: missing.clone(),
        tls_key_file: missing,
        ..settings()
    };

    let error = Server::bind(&settings).await.err().unwrap().to_string();

    assert_eq!(error, "cannot read certificates from /nowhere/cert.pem");
}

/// Clients that trust two certificates, and count what fails.
struct Clients {
    address: std::net::SocketAddr,
    connector: TlsConnector,
    requests: AtomicUsize,
    failed: AtomicUsize,
    is_done: AtomicBool,
}

impl Clients {
    fn new(node: &Node, trusted: &[CertificateDer<'static>]) -> Arc<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in trusted {
            roots.add(certificate.clone()).unwrap();
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Arc::new(Self {
            address: node.address,
            connector: TlsConnector::from(Arc::new(config)),
            requests: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            is_done: AtomicBool::new(false),
        })
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = "localhost".try_into().unwrap();
        self.connector.connect(name, stream).await
    }

    async fn request(&self, stream: &mut TlsStream<TcpStream>) {
        let sent = stream.write_all(KEEP_ALIVE_REQUEST.as_bytes()).await;
        let is_ok = sent.is_ok() && read_response(stream).await.is_some();
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.failed
            .fetch_add(usize::from(!is_ok), Ordering::Relaxed);
    }

    /// Requests over one connection.
    async fn keep_using(self: Arc<Self>, mut stream: TlsStream<TcpStream>) {
        while !self.is_done.load(Ordering::Relaxed) {
            self.request(&mut stream).await;
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Requests over a new connection each.
    async fn keep_connecting(self: Arc<Self>) {
        while !self.is_done.load(Ordering::Relaxed) {
            match self.connect().await {
                Ok(mut stream) => self.request(&mut stream).await,
                Err(_) => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until new connections see this certificate.
    async fn wait_for(&self, expected: &CertificateDer<'_>) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let stream = self.connect().await.unwrap();
            if stream.get_ref().1.peer_certificates().unwrap()[0] == *expected {
                return;
            }
            assert!(Instant::now() < deadline, "the certificate is not served");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Reads one successful response; `None` if the connection ends or the status is another.
async fn read_response(stream: &mut TlsStream<TcpStream>) -> Option<()> {
    let mut text = String::new();
    loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.ok().filter(|it| 0 < *it)?;
        text.push_str(std::str::from_utf8(&chunk[..count]).ok()?);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let (_, length) = head.split_once("content-length: ")?;
        let length: usize = length.lines().next()?.parse().ok()?;
        if length <= body.len() {
            return head.starts_with("HTTP/1.1 200 ").then_some(());
        }
    }
}

fn write_pair(folder: &Path, pair: &CertifiedKey<KeyPair>) {
    std::fs::write(folder.join("cert.pem"), pair.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), pair.signing_key.serialize_pem()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_certificate_is_served_without_a_failed_request() {
    let generate = || generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (first, second) = (generate(), generate());
    let folder = tempfile::tempdir().unwrap();
    write_pair(folder.path(), &first);
    let node = Node::start(Http {
        tls_cert_file: Some(folder.path().join("cert.pem")),
        tls_key_file: Some(folder.path().join("key.pem")),
        ..settings()
    })
    .await;
    let (old, new) = (first.cert.der().clone(), second.cert.der().clone());
    let clients = Clients::new(&node, &[old.clone(), new.clone()]);
    clients.wait_for(&old).await;
    let existing = clients.connect().await.unwrap();
    let mut load = tokio::task::JoinSet::new();
    load.spawn(clients.clone().keep_using(existing));
    for _ in 0..3 {
        load.spawn(clients.clone().keep_connecting());
    }

    write_pair(folder.path(), &second);
    clients.wait_for(&new).await;
    let after_change = clients.requests.load(Ordering::Relaxed);
    std::fs::write(folder.path().join("cert.pem"), "damaged").unwrap();
    // Longer than two polls, after which a usable certificate would have been loaded.
    sleep(Duration::from_secs(6)).await;
    clients.wait_for(&new).await;
    write_pair(folder.path(), &first);
    clients.wait_for(&old).await;
    clients.is_done.store(true, Ordering::Relaxed);
    load.join_all().await;

    let requests = clients.requests.load(Ordering::Relaxed);
    let failed = clients.failed.load(Ordering::Relaxed);
    assert!(0 < after_change && after_change < requests);
    assert_eq!(failed, 0, "{failed} of {requests} requests failed");
}
