//! Lines to other parties: HTTPS with both sides authenticated, answers of bounded size and time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url, retry};
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Trouble;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A way to ask one other party.
pub(super) struct Line {
    client: Client,
    /// The second is tried when the first cannot be reached at all.
    urls: Vec<Url>,
    timeout: Duration,
    header: Option<(HeaderName, HeaderValue)>,
}

/// The files that say who we are and whom we trust.
pub(super) struct Credentials<'a> {
    pub certificate: Option<&'a Path>,
    pub key: Option<&'a Path>,
    pub ca: &'a Path,
}

impl Line {
    pub(super) fn new(
        credentials: &Credentials<'_>,
        urls: &[String],
        timeout: Duration,
    ) -> Result<Self, String> {
        let urls: Result<Vec<Url>, String> = urls.iter().map(|url| https(url)).collect();
        let urls = urls?;
        if urls.is_empty() {
            return Err("needs an address to ask".to_owned());
        }
        let client = Client::builder()
            .tls_backend_preconfigured(client_config(credentials)?)
            .https_only(true)
            .redirect(Policy::none())
            .retry(retry::never())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .build()
            .map_err(|_| "its certificates do not make a TLS client".to_owned())?;
        Ok(Self {
            client,
            urls,
            timeout,
            header: None,
        })
    }

    /// The same line, with a header that says who asks.
    pub(super) fn with_header(mut self, name: &'static str, mut value: HeaderValue) -> Self {
        value.set_sensitive(true);
        self.header = Some((HeaderName::from_static(name), value));
        self
    }

    /// Sends one message to one address and takes the answer, up to `limit` bytes.
    ///
    /// Nothing is ever sent twice: another address is tried only when the one before it was not
    /// even connected to.
    pub(super) async fn ask(
        &self,
        path: &str,
        body: String,
        limit: usize,
    ) -> Result<Vec<u8>, Trouble> {
        let asked = async {
            let mut reached = Err(Trouble::not_reached());
            for url in &self.urls {
                reached = self.ask_one(url, path, body.clone(), limit).await;
                match &reached {
                    Err(trouble) if trouble.message == Trouble::not_reached().message => {}
                    _ => break,
                }
            }
            reached
        };
        let answer = tokio::time::timeout(self.timeout, asked).await;
        answer.unwrap_or_else(|_| Err(Trouble::timed_out()))
    }

    async fn ask_one(
        &self,
        url: &Url,
        path: &str,
        body: String,
        limit: usize,
    ) -> Result<Vec<u8>, Trouble> {
        let mut url = url.clone();
        if !path.is_empty() {
            let base = url.path().trim_end_matches('/').to_owned();
            url.set_path(&format!("{base}{path}"));
        }
        let mut request = self.client.post(url).header(CONTENT_TYPE, JSON).body(body);
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(|error| {
            // The text of the error names the address, which is nobody's business but the operator's.
            match (error.is_connect(), error.is_timeout()) {
                (true, _) => Trouble::not_reached(),
                (false, true) => Trouble::timed_out(),
                (false, false) => Trouble::cut_off(),
            }
        })?;
        let status = response.status();
        if !status.is_success() {
            let detail = format!("It answered with the HTTP status {}.", status.as_u16());
            return Err(Trouble::cut_off().with_detail(detail));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| Trouble::cut_off())? {
            if answer.len() + chunk.len() > limit {
                return Err(Trouble::cut_off().with_detail("Its answer is too long."));
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

fn https(url: &str) -> Result<Url, String> {
    Url::parse(url)
        .ok()
        .filter(|url| url.scheme() == "https" && url.has_host() && url.query().is_none())
        .ok_or_else(|| "an address to ask must be an https URL without a query".to_owned())
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
