//! HTTPS client for directory servers and vendors: mutual TLS, with limits on response size and time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use cloakroom_platform::certificates::{Certificate, read_chain};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;

use super::NetworkFailure;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Requests in flight per peer. Further requests queue, and queueing counts toward their timeout.
const REQUESTS_MAX: usize = 256;

/// HTTPS client for one peer.
pub(super) struct HttpsClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Tried in order; the next one only after a failed connection.
    urls: Vec<String>,
    header: Option<(HeaderName, HeaderValue)>,
    in_flight: Semaphore,
}

/// Limits of one request.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub timeout: Duration,
    pub max_bytes: usize,
}

/// Why a request to one URL failed.
enum SendError {
    /// No connection was established, so nothing was sent.
    NotConnected,
    Network(NetworkFailure),
}

/// The client certificate, if there is one, and the file of the trusted CAs.
pub(super) struct Credentials<'a> {
    pub certificate: Option<Arc<Certificate>>,
    pub ca: &'a Path,
}

impl HttpsClient {
    pub(super) fn new(credentials: &Credentials<'_>, urls: &[String]) -> Result<Self, String> {
        let urls: Vec<String> = urls
            .iter()
            .map(|url| https(url))
            .collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err("needs at least one URL".to_owned());
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_config(credentials)?)
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self {
            client,
            urls,
            header: None,
            in_flight: Semaphore::new(REQUESTS_MAX),
        })
    }

    /// Adds a header, such as an API key, to every request.
    pub(super) fn with_header(mut self, name: &'static str, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        self.header = Some((HeaderName::from_static(name), value));
        self
    }

    /// Sends one message and returns the response body.
    ///
    /// No message is sent twice: the next URL is tried only if no connection to the previous one was established.
    pub(super) async fn post(
        &self,
        path: &str,
        body: String,
        limits: Limits,
    ) -> Result<Vec<u8>, NetworkFailure> {
        let request = async {
            let _permit = self.in_flight.acquire().await;
            let body = Bytes::from(body);
            for url in &self.urls {
                match self
                    .post_to(url, path, body.clone(), limits.max_bytes)
                    .await
                {
                    Ok(response) => return Ok(response),
                    Err(SendError::Network(failure)) => return Err(failure),
                    Err(SendError::NotConnected) => {}
                }
            }
            Err(NetworkFailure::unreachable())
        };
        let response = tokio::time::timeout(limits.timeout, request).await;
        response.unwrap_or_else(|_| Err(NetworkFailure::timed_out()))
    }

    async fn post_to(
        &self,
        url: &str,
        path: &str,
        body: Bytes,
        max_bytes: usize,
    ) -> Result<Vec<u8>, SendError> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{url}{path}"))
            .header(CONTENT_TYPE, JSON);
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|_| SendError::NotConnected)?;
        // The error text is dropped: it contains the URL, which API callers must not see.
        let response = self.client.request(request).await;
        let response = response.map_err(|error| match error.is_connect() {
            true => SendError::NotConnected,
            false => SendError::Network(NetworkFailure::connection_lost()),
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), max_bytes)
            .collect()
            .await;
        let body = body
            .map_err(|_| SendError::Network(NetworkFailure::connection_lost()))?
            .to_bytes();
        // Some peers send an Erro message with an HTTP error status.
        if !status.is_success() && !is_erro(&body) {
            let detail = format!("The server returned HTTP status {}.", status.as_u16());
            return Err(SendError::Network(
                NetworkFailure::connection_lost().with_detail(detail),
            ));
        }
        Ok(Vec::from(body))
    }
}

fn is_erro(body: &[u8]) -> bool {
    let message: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    message.is_some_and(|message| message["messageType"] == "Erro")
}

/// Validates a URL and removes its trailing slash.
fn https(url: &str) -> Result<String, String> {
    let uri: Option<Uri> = url.parse().ok();
    let is_fine = uri.is_some_and(|uri| {
        uri.scheme_str() == Some("https") && uri.host().is_some() && uri.query().is_none()
    });
    match is_fine {
        true => Ok(url.trim_end_matches('/').to_owned()),
        false => Err("urls must be https URLs without a query".to_owned()),
    }
}

fn client_config(credentials: &Credentials<'_>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| "TLS is not available".to_owned())?
        .with_root_certificates(roots(credentials.ca)?);
    Ok(match &credentials.certificate {
        Some(certificate) => {
            let mut config = builder.with_client_cert_resolver(certificate.clone());
            // A resumed session would keep the certificate that it started with.
            config.resumption = Resumption::disabled();
            config
        }
        None => builder.with_no_client_auth(),
    })
}

pub(super) fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_chain(path).map_err(|error| error.to_string())? {
        roots
            .add(certificate)
            .map_err(|_| format!("{} contains no CA certificate", path.display()))?;
    }
    Ok(roots)
}

/// Accepts client certificates issued by one of these CAs.
pub(super) fn verifier(roots: RootCertStore) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| "the CA certificates cannot verify clients".to_owned())
}
