//! The vault's interface as a client sees it: an answer, or none.

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

/// A little more than a node takes at most, so that its own verdict is heard.
const PATIENCE: Duration = Duration::from_secs(17);

#[derive(Clone)]
pub(crate) struct Api {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// What is asked, by whom.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) key: &'a str,
    pub(crate) body: Option<Value>,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) trace: Option<&'a str>,
}

impl<'a> Question<'a> {
    pub(crate) fn get(path: &'a str, key: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            key,
            body: None,
            idempotency_key: None,
            trace: None,
        }
    }
}

impl Api {
    /// Trusts the authority of this cluster alone.
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
            // Whether a request is sent again is for the ledger to decide.
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self {
            client,
            base: base.to_owned(),
        })
    }

    /// The same client at another address.
    pub(crate) fn at(&self, base: &str) -> Self {
        Self {
            client: self.client.clone(),
            base: base.to_owned(),
        }
    }

    pub(crate) async fn ask(&self, question: Question<'_>) -> Result<Answer> {
        tokio::time::timeout(PATIENCE, self.send(question))
            .await
            .context("no answer in time")?
    }

    async fn send(&self, question: Question<'_>) -> Result<Answer> {
        let media_type = match question.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut request = Request::builder()
            .method(question.method)
            .uri(format!("{}{}", self.base, question.path))
            .header("BT-API-KEY", question.key);
        if let Some(key) = question.idempotency_key {
            request = request.header("BT-IDEMPOTENCY-KEY", key);
        }
        if let Some(trace) = question.trace {
            request = request.header("BT-TRACE-ID", trace);
        }
        let body = match question.body {
            Some(body) => {
                request = request.header("Content-Type", media_type);
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let response = self.client.request(request.body(Full::new(body))?).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        let body = match body.is_empty() {
            true => Value::Null,
            // HAProxy speaks HTML when it has nobody to ask.
            false => serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        Ok(Answer { status, body })
    }
}
