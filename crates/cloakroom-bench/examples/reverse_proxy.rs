//! The baseline of proxied requests: a reverse proxy that only forwards, with hyper's pooled client.
//!
//! `cargo xtask bench --proxy` compares a node with it. Runtime, allocator and profile are those of the node.
//!
//! `reverse_proxy ADDRESS HOST DESTINATION CA_FILE` forwards requests to HOST, which is at the address DESTINATION, over
//! TLS. `GET /` returns 200 itself.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use mimalloc::MiMalloc;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpListener;
use zeroizing_alloc::ZeroAlloc;

#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, host, destination, ca_file] = arguments
        .try_into()
        .ok()
        .context("reverse_proxy ADDRESS HOST DESTINATION CA_FILE")?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(serve(&address, &host, destination.parse()?, &ca_file))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "connections end with the program"
)]
async fn serve(address: &str, host: &str, destination: SocketAddr, ca_file: &str) -> Result<()> {
    let authority = format!("{host}:{}", destination.port());
    // The connector resolves every name to the address of the destination.
    let resolver = tower::service_fn(move |_: Name| async move {
        Ok::<_, std::convert::Infallible>(std::iter::once(destination))
    });
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls(ca_file)?)
        .https_only()
        .enable_http1()
        .wrap_connector(connector);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, authority) = (client.clone(), authority.clone());
        tokio::spawn(async move {
            let service = tower::service_fn(move |request| {
                let (client, authority) = (client.clone(), authority.clone());
                async move {
                    Ok::<_, std::convert::Infallible>(forward(&client, &authority, request).await)
                }
            });
            // A client that closes its connection is no error.
            let _closed = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
                .await;
        });
    }
}

async fn forward<R>(
    client: &Client<HttpsConnector<HttpConnector<R>>, Incoming>,
    authority: &str,
    mut request: Request<Incoming>,
) -> Response
where
    HttpsConnector<HttpConnector<R>>: hyper_util::client::legacy::connect::Connect + Clone,
    R: Clone + Send + Sync + 'static,
{
    if request.method() == Method::GET {
        return StatusCode::OK.into_response();
    }
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let path = path.strip_prefix("/proxy").unwrap_or(path);
    let uri = format!("https://{authority}{path}").parse::<Uri>();
    let (Ok(uri), Ok(host)) = (uri, HeaderValue::from_str(authority)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    request.headers_mut().insert(HOST, host);
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

fn tls(ca_file: &str) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file)? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
