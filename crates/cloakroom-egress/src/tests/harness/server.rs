//! A TLS server that runs a script for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Authority, Leaf};

pub(in crate::tests) type Stream = TlsStream<TcpStream>;

pub(in crate::tests) struct Server {
    pub(in crate::tests) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: AbortHandle,
}

/// How the server does TLS.
pub(in crate::tests) struct ServerTls(Arc<ServerConfig>);

impl ServerTls {
    pub(in crate::tests) fn new(leaf: &Leaf) -> Self {
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = builder
            .with_no_client_auth()
            .with_single_cert(leaf.chain(), leaf.private_key());
        Self(Arc::new(config.unwrap()))
    }

    /// Requires client certificates of an authority.
    pub(in crate::tests) fn mutual(leaf: &Leaf, clients: &Authority) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(clients.certificate()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
            .build()
            .unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(leaf.chain(), leaf.private_key());
        Self(Arc::new(config.unwrap()))
    }
}

impl Server {
    /// Runs `script` for each connection after its handshake.
    pub(in crate::tests) async fn start<F>(
        tls: ServerTls,
        script: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(tls.0);
        let script = Arc::new(script);
        Self::start_tcp(([127, 0, 0, 1], 0).into(), move |stream| {
            let (acceptor, script) = (acceptor.clone(), script.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    script(stream).await;
                }
            }
        })
        .await
    }

    /// Runs `script` for each TCP connection.
    #[expect(clippy::disallowed_methods, reason = "the server ends with its test")]
    pub(in crate::tests) async fn start_tcp<F>(
        address: SocketAddr,
        script: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(stream));
            }
        });
        Self {
            address,
            connections,
            task: task.abort_handle(),
        }
    }

    /// TCP connections so far.
    pub(in crate::tests) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a request head. Returns what was read if the client closes the connection first.
pub(in crate::tests) async fn read_head(stream: &mut Stream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// Responds with the same bytes to each request without a body, until the client closes the connection.
pub(in crate::tests) async fn respond(mut stream: Stream, response: &str) {
    while !read_head(&mut stream).await.is_empty() {
        if stream.write_all(response.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}
