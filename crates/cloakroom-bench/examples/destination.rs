//! The destination of proxied requests in `cargo xtask bench --proxy`: HTTP/1.1 over TLS.
//!
//! `destination ADDRESS CONTROL HOST CA_FILE` serves HOST at ADDRESS and writes the certificate of its CA to CA_FILE.
//! `/echo` returns the body of the request, `/slow` responds after 20 seconds, and every other path at once. CONTROL is an
//! address for plain HTTP, which returns the number of requests that `/slow` holds.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mimalloc::MiMalloc;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const SLOW: Duration = Duration::from_secs(20);
const RESPONSE: &str =
    r#"{"id":"ch_1","object":"charge","amount":1000,"currency":"usd","status":"succeeded"}"#;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, control, host, ca_file] = arguments
        .try_into()
        .ok()
        .context("destination ADDRESS CONTROL HOST CA_FILE")?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(serve(&address, control, &host, &ca_file))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "connections end with the program"
)]
async fn serve(address: &str, control: String, host: &str, ca_file: &str) -> Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls(host, ca_file)?));
    let listener = TcpListener::bind(address).await?;
    let held = Arc::new(AtomicUsize::new(0));
    tokio::spawn(serve_control(control, held.clone()));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, held) = (acceptor.clone(), held.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = tower::service_fn(move |request| {
                let held = held.clone();
                async move { Ok::<_, std::convert::Infallible>(respond(request, &held).await) }
            });
            // A client that closes its connection is no error.
            let _closed = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                .await;
        });
    }
}

async fn respond(request: Request<hyper::body::Incoming>, held: &AtomicUsize) -> Response {
    match request.uri().path() {
        "/echo" => Body::new(request.into_body()).into_response(),
        "/slow" => {
            let _held = Held::new(held);
            tokio::time::sleep(SLOW).await;
            RESPONSE.into_response()
        }
        _ => {
            let body = axum::body::to_bytes(Body::new(request.into_body()), usize::MAX);
            match body.await {
                Ok(_) => ([(CONTENT_TYPE, "application/json")], RESPONSE).into_response(),
                Err(_) => axum::http::StatusCode::BAD_REQUEST.into_response(),
            }
        }
    }
}

/// Counts a request until it is responded to or its client is gone.
struct Held<'a>(&'a AtomicUsize);

impl<'a> Held<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_control(address: String, held: Arc<AtomicUsize>) -> Result<()> {
    let count = async move || held.load(Ordering::Relaxed).to_string();
    let listener = TcpListener::bind(address).await?;
    axum::serve(listener, Router::new().fallback(count)).await?;
    Ok(())
}

/// Creates a CA and a certificate of it for `host`.
fn tls(host: &str, ca_file: &str) -> Result<ServerConfig> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![host.to_owned()])?.signed_by(&key, &issuer)?;
    std::fs::write(ca_file, issuer.pem())?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok(config)
}
