//! Sends results to the 3DS Server over mutual TLS.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::state::SharedState;
use crate::transaction::Transaction;
use crate::{Certificates, Error, tls, wire};

/// Longer than the three seconds within which a 3DS Server responds.
const TIMEOUT: Duration = Duration::from_secs(5);
const REPLY_BYTES_MAX: usize = 128 * 1024;

type Connection = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends to the 3DS Server with the client certificate or, to test rejection, without.
pub(crate) struct ResultSender {
    certified: Connection,
    anonymous: Connection,
}

impl ResultSender {
    pub(crate) fn new(certificates: &Certificates) -> Result<Self, Error> {
        let connection = |has_certificate| -> Result<Connection, Error> {
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(tls::client(certificates, has_certificate)?)
                .https_only()
                .enable_http1()
                .build();
            let mut builder = Client::builder(TokioExecutor::new());
            // Results are rare; a pooled connection would be closed before its next use.
            Ok(builder.pool_max_idle_per_host(0).build(connector))
        };
        Ok(Self {
            certified: connection(true)?,
            anonymous: connection(false)?,
        })
    }

    async fn post(&self, url: &str, body: &str, certified: bool) -> Result<(u16, Bytes), String> {
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .body(Full::from(body.to_owned()))
            .map_err(|_| "threeDSServerURL is not a valid URL".to_owned())?;
        let connection = if certified {
            &self.certified
        } else {
            &self.anonymous
        };
        let exchange = async {
            let response = connection
                .request(request)
                .await
                .map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), REPLY_BYTES_MAX);
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok((status, body.to_bytes()))
        };
        timeout(TIMEOUT, exchange)
            .await
            .map_err(|_| "the 3DS Server did not respond in time".to_owned())?
    }
}

impl SharedState {
    /// Sends an RReq. Returns `{"status", "message"}`, or `{"failure"}` with a description.
    pub(crate) async fn send_result(
        &self,
        transaction: &Transaction,
        text: &str,
        certified: bool,
    ) -> Value {
        self.count_sent("RReq");
        let reply = self.sender.post(&transaction.results_url, text, certified);
        match reply.await {
            Ok((status, body)) => match wire::parse_object(&body) {
                Some(message) => {
                    self.count_received(wire::text(&message, "messageType").unwrap_or("unknown"));
                    json!({"status": status, "message": message})
                }
                None => json!({"status": status, "failure": "the response is not a message"}),
            },
            Err(failure) => json!({"failure": failure}),
        }
    }
}
