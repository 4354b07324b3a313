//! Lines to other parties: HTTPS with both sides authenticated, answers of bounded size and time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::Semaphore;

use super::Trouble;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Questions that one other party is asked at a time. More wait, and the wait is part of their time.
const QUESTIONS_MAX: usize = 256;

/// A way to ask one other party.
pub(super) struct Line {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The second is tried when the first cannot be reached at all.
    urls: Vec<String>,
    header: Option<(HeaderName, HeaderValue)>,
    places: Semaphore,
}

/// What one question may cost.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub time: Duration,
    pub bytes: usize,
}

/// Why one address gave no answer.
enum Silence {
    /// Nothing was sent.
    NotReached,
    Trouble(Trouble),
}

/// The files that say who we are and whom we trust.
pub(super) struct Credentials<'a> {
    pub certificate: Option<&'a Path>,
    pub key: Option<&'a Path>,
    pub ca: &'a Path,
}

impl Line {
    pub(super) fn new(credentials: &Credentials<'_>, urls: &[String]) -> Result<Self, String> {
        let urls: Vec<String> = urls
            .iter()
            .map(|url| https(url))
            .collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err("needs an address to ask".to_owned());
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
            places: Semaphore::new(QUESTIONS_MAX),
        })
    }

    /// The same line, with a header that says who asks.
    pub(super) fn with_header(mut self, name: &'static str, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        self.header = Some((HeaderName::from_static(name), value));
        self
    }

    /// Sends one message and takes the answer.
    ///
    /// Nothing is ever sent twice: another address is tried only when the one before it was not
    /// even connected to.
    pub(super) async fn ask(
        &self,
        path: &str,
        body: String,
        bounds: Bounds,
    ) -> Result<Vec<u8>, Trouble> {
        let asked = async {
            let _place = self.places.acquire().await;
            let body = Bytes::from(body);
            for url in &self.urls {
                match self.ask_one(url, path, body.clone(), bounds.bytes).await {
                    Ok(answer) => return Ok(answer),
                    Err(Silence::Trouble(trouble)) => return Err(trouble),
                    Err(Silence::NotReached) => {}
                }
            }
            Err(Trouble::not_reached())
        };
        let answer = tokio::time::timeout(bounds.time, asked).await;
        answer.unwrap_or_else(|_| Err(Trouble::timed_out()))
    }

    async fn ask_one(
        &self,
        url: &str,
        path: &str,
        body: Bytes,
        most: usize,
    ) -> Result<Vec<u8>, Silence> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{url}{path}"))
            .header(CONTENT_TYPE, JSON);
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|_| Silence::NotReached)?;
        // The text of an error names the address, which is nobody's business but the operator's.
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| match error.is_connect() {
            true => Silence::NotReached,
            false => Silence::Trouble(Trouble::cut_off()),
        })?;
        let status = answer.status();
        let whole = Limited::new(answer.into_body(), most).collect().await;
        let whole = whole
            .map_err(|_| Silence::Trouble(Trouble::cut_off()))?
            .to_bytes();
        // Some tell errors of the protocol with a status that is one as well.
        if !status.is_success() && !is_erro(&whole) {
            let detail = format!("It answered with the HTTP status {}.", status.as_u16());
            return Err(Silence::Trouble(Trouble::cut_off().with_detail(detail)));
        }
        Ok(Vec::from(whole))
    }
}

fn is_erro(body: &[u8]) -> bool {
    let told: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    told.is_some_and(|told| told["messageType"] == "Erro")
}

/// An address without a slash at its end.
fn https(url: &str) -> Result<String, String> {
    let uri: Option<Uri> = url.parse().ok();
    let is_fine = uri.is_some_and(|uri| {
        uri.scheme_str() == Some("https") && uri.host().is_some() && uri.query().is_none()
    });
    match is_fine {
        true => Ok(url.trim_end_matches('/').to_owned()),
        false => Err("an address to ask must be an https URL without a query".to_owned()),
    }
}

fn client_config(credentials: &Credentials<'_>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| "TLS is not available".to_owned())?
        .with_root_certificates(roots(credentials.ca)?);
    match (credentials.certificate, credentials.key) {
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(chain(certificate)?, private_key(key)?)
            .map_err(|_| "its certificate and key do not belong together".to_owned()),
        _ => Ok(builder.with_no_client_auth()),
    }
}

pub(super) fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots
            .add(certificate)
            .map_err(|_| format!("{} holds no certificate authority", path.display()))?;
    }
    Ok(roots)
}

/// Accepts certificates of clients that one of these authorities has issued.
pub(super) fn verifier(roots: RootCertStore) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| "its authorities do not make a verifier".to_owned())
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = || format!("cannot read certificates from {}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|_| unreadable())?;
    let all: Result<Vec<_>, _> = read.collect();
    all.ok()
        .filter(|all| !all.is_empty())
        .ok_or_else(unreadable)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|_| format!("cannot read a private key from {}", path.display()))
}
