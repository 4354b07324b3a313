//! HTTP client of a Vault or OpenBao server.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::config;
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::{Failure, secret_file};

/// A longer response is not one of Transit.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Client {
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Without a path.
    url: String,
    token_file: PathBuf,
    namespace: Option<HeaderValue>,
}

/// A response, whatever its status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Client {
    pub(super) fn new(config: &config::RootKey) -> Result<Self, Failure> {
        let invalid = |setting: &str, what: &str| {
            Failure::Configuration(format!("root_key.{setting} {what}"))
        };
        let url = config.transit_url.as_deref();
        let url = url.ok_or_else(|| invalid("transit_url", "is not set"))?;
        let url = url.trim_end_matches('/').to_owned();
        let uri: Uri = url
            .parse()
            .map_err(|_| invalid("transit_url", "is not a URL"))?;
        if uri.path() != "/" || uri.query().is_some() {
            return Err(invalid("transit_url", "must not have a path"));
        }
        let token_file = config.transit_token_file.clone();
        let token_file = token_file.ok_or_else(|| invalid("transit_token_file", "is not set"))?;
        let namespace = config.transit_namespace.as_deref();
        let namespace = namespace
            .map(HeaderValue::from_str)
            .transpose()
            .map_err(|_| invalid("transit_namespace", "is not valid"))?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(config)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self {
            http: hyper_util::client::legacy::Client::builder(TokioExecutor::new())
                .build(connector),
            url,
            token_file,
            namespace,
        })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Sends one request. The token is read each time: an agent replaces it before it expires.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Sensitive<String>>,
    ) -> Result<Answer, Failure> {
        let token = secret_file::read(&self.token_file)?;
        let mut token = HeaderValue::from_str(token.expose()).map_err(|_| {
            Failure::Configuration("root_key.transit_token_file contains no token".to_owned())
        })?;
        token.set_sensitive(true);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .header("x-vault-request", "true")
            .header("x-vault-token", token);
        if let Some(namespace) = &self.namespace {
            request = request.header("x-vault-namespace", namespace);
        }
        let body = body.map_or_else(Bytes::new, |text| Bytes::from(text.into_inner()));
        let request = request
            .body(Full::new(body))
            .map_err(|_| Failure::Configuration("root_key.transit_key is not valid".to_owned()))?;
        let unreachable = Failure::Unavailable("the server cannot be reached");
        let response = self.http.request(request).await;
        let response = response.map_err(|_| unreachable.clone())?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX);
        let body = body.collect().await.map_err(|_| unreachable)?.to_bytes();
        Ok(Answer {
            status,
            // Errors of proxies in between are not JSON; their status is enough.
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }
}

/// TLS that verifies the host name and trusts only the configured certificate authorities.
fn tls(config: &config::RootKey) -> Result<ClientConfig, Failure> {
    let invalid = |what: &str| Failure::Configuration(format!("root_key.transit_ca_file {what}"));
    let mut roots = RootCertStore::empty();
    match &config.transit_ca_file {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|_| invalid("cannot be read as PEM"))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|_| invalid("is not valid PEM"))?;
                let added = roots.add(certificate);
                added.map_err(|_| invalid("contains an invalid certificate"))?;
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(native.certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| invalid("cannot be used"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
