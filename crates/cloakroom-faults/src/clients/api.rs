//! HTTP client of the vault's API.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

/// Longer than a node's own request timeout, so that its response arrives.
const TIMEOUT: Duration = Duration::from_secs(17);

#[derive(Clone)]
pub(crate) struct Api {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
}

pub(crate) struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) key: &'a str,
    pub(crate) body: Option<Value>,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) trace: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
}

impl<'a> ApiRequest<'a> {
    pub(crate) fn get(path: &'a str, key: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            key,
            body: None,
            idempotency_key: None,
            trace: None,
            headers: &[],
        }
    }
}

impl Api {
    /// Trusts only the CA of this cluster.
    pub(crate) fn new(base: &str, authority: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(3)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            // Clients retry explicitly, so that the history contains every attempt.
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self {
            client,
            base: base.to_owned(),
        })
    }

    /// The same client with another base URL.
    pub(crate) fn at(&self, base: &str) -> Self {
        Self {
            client: self.client.clone(),
            base: base.to_owned(),
        }
    }

    pub(crate) async fn send(&self, request: ApiRequest<'_>) -> Result<ApiResponse> {
        tokio::time::timeout(TIMEOUT, self.exchange(request))
            .await
            .context("no response in time")?
    }

    async fn exchange(&self, request: ApiRequest<'_>) -> Result<ApiResponse> {
        let media_type = match request.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut builder = Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.base, request.path))
            .header("BT-API-KEY", request.key);
        if let Some(key) = request.idempotency_key {
            builder = builder.header("BT-IDEMPOTENCY-KEY", key);
        }
        if let Some(trace) = request.trace {
            builder = builder.header("BT-TRACE-ID", trace);
        }
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        let body = match request.body {
            Some(body) => {
                builder = builder.header("Content-Type", media_type);
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let response = self.client.request(builder.body(Full::new(body))?).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        let body = match body.is_empty() {
            true => Value::Null,
            // HAProxy responds with HTML if no node is available.
            false => serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        Ok(ApiResponse { status, body })
    }
}
