//! An HTTPS client: a browser, or a network with a client certificate.

use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Trusts the certificate authority of the test.
pub(super) struct TlsClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl TlsClient {
    /// `identity` holds the paths of a client certificate and its key.
    pub(super) fn new(ca: &Path, identity: Option<(&Path, &Path)>) -> Self {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(ca).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    /// `None` if the connection fails.
    pub(super) async fn post(
        &self,
        url: &str,
        media: &str,
        body: String,
    ) -> Option<(StatusCode, String)> {
        let request = Request::builder().method(Method::POST).uri(url);
        let request = request.header("content-type", media);
        self.send(request.body(Full::from(body)).unwrap()).await
    }

    pub(super) async fn get(&self, url: &str) -> Option<(StatusCode, String)> {
        let request = Request::builder().uri(url);
        self.send(request.body(Full::default()).unwrap()).await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Option<(StatusCode, String)> {
        let response = self.0.request(request).await.ok()?;
        let status = response.status();
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, String::from_utf8_lossy(&bytes).into_owned()))
    }
}
