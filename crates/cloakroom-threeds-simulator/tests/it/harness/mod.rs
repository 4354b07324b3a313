//! A minimal 3DS Server and browser that use the simulator.

mod requests;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;

use cloakroom_threeds_simulator::{Certificates, Options, Simulator};

use server::{listen, pair, roots};

type Connection = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The simulator and a 3DS Server.
pub(crate) struct Harness {
    pub(crate) simulator: Simulator,
    certified: Connection,
    anonymous: Connection,
    results: Arc<Mutex<Vec<Value>>>,
    results_url: String,
    _folder: TempDir,
    _listener: JoinSet<()>,
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn options(folder: PathBuf) -> Options {
    Options {
        listen: any_port(),
        acs_listen: any_port(),
        acs_plain: false,
        folder,
        decoupled_delay: Duration::from_millis(200),
        creq_timeout: Duration::from_secs(30),
    }
}

pub(crate) async fn start() -> Harness {
    start_with(|_| {}).await
}

pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Harness {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path().to_owned());
    change(&mut options);
    let simulator = Simulator::start(options).await.unwrap();
    let certificates = simulator.certificates().clone();
    let results = Arc::new(Mutex::new(Vec::new()));
    let (results_url, listener) = listen(&certificates, Arc::clone(&results)).await;
    Harness {
        certified: connection(&certificates, true),
        anonymous: connection(&certificates, false),
        simulator,
        results,
        results_url,
        _folder: folder,
        _listener: listener,
    }
}

fn connection(certificates: &Certificates, has_certificate: bool) -> Connection {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(certificates));
    let config = if has_certificate {
        let (chain, key) = pair(certificates);
        builder.with_client_auth_cert(chain, key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .build();
    Client::builder(TokioExecutor::new()).build(connector)
}

impl Harness {
    /// Sends a message to a network's DS.
    pub(crate) async fn exchange(&self, network: &str, message: &Value) -> Value {
        let (status, text) = self.send(network, &message.to_string()).await.unwrap();
        assert_eq!(status, 200);
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn send(&self, network: &str, text: &str) -> Result<(u16, String), String> {
        let url = self.simulator.directory_url(network);
        post(&self.certified, &url, "application/json", text).await
    }

    pub(crate) async fn send_without_certificate(
        &self,
        text: &str,
    ) -> Result<(u16, String), String> {
        let url = self.simulator.directory_url("visa");
        post(&self.anonymous, &url, "application/json", text).await
    }

    /// Posts a form to the ACS, as a browser.
    pub(crate) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let encoded: Vec<String> = fields
            .iter()
            .map(|(name, value)| {
                format!("{name}={}", value.replace('+', "%2B").replace('=', "%3D"))
            })
            .collect();
        let url = format!("{}{path}", self.simulator.acs_url());
        let kind = "application/x-www-form-urlencoded";
        post(&self.anonymous, &url, kind, &encoded.join("&"))
            .await
            .unwrap()
    }

    pub(crate) async fn control(&self, path: &str, body: Option<Value>) -> (u16, Value) {
        let url = format!("{}{path}", self.simulator.acs_url());
        let (status, text) = match body {
            Some(body) => post(&self.anonymous, &url, "application/json", &body.to_string()).await,
            None => {
                let request = Request::get(&url).body(Full::default()).unwrap();
                send_request(&self.anonymous, request).await
            }
        }
        .unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }

    pub(crate) async fn post_text(&self, url: &str, body: &str) -> u16 {
        post(&self.anonymous, url, "text/plain", body)
            .await
            .unwrap()
            .0
    }

    pub(crate) async fn vendor(&self, call: &str, key: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/vendor/{call}", self.simulator.acs_url());
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header("APIKey", key)
            .body(Full::from(body.to_string()))
            .unwrap();
        let (status, text) = send_request(&self.anonymous, request).await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) async fn delete(&self, path: &str) -> u16 {
        let url = format!("{}{path}", self.simulator.acs_url());
        let request = Request::delete(&url).body(Full::default()).unwrap();
        send_request(&self.anonymous, request).await.unwrap().0
    }

    pub(crate) fn results(&self) -> Vec<Value> {
        self.results.lock().unwrap().clone()
    }

    /// Waits for the first RReq.
    pub(crate) async fn result(&self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(result) = self.results().first() {
                return result.clone();
            }
            assert!(Instant::now() < deadline, "no RReq arrived");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn with(mut message: Value, name: &str, value: &str) -> Value {
    message[name] = json!(value);
    message
}

pub(crate) fn new_id() -> String {
    let bytes = cloakroom_crypto::random_uuid_v4_bytes();
    uuid::Uuid::from_bytes(bytes).to_string()
}

pub(crate) fn encode(message: &Value) -> String {
    cloakroom_emv3ds::base64url::encode(message.to_string().as_bytes())
}

pub(crate) fn decode(text: &str) -> Value {
    let bytes = cloakroom_emv3ds::base64url::decode(text).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The value of a hidden form field.
pub(crate) fn hidden_field(page: &str, name: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

pub(crate) fn text<'a>(message: &'a Value, name: &str) -> Option<&'a str> {
    message[name].as_str()
}

async fn post(
    connection: &Connection,
    url: &str,
    kind: &str,
    body: &str,
) -> Result<(u16, String), String> {
    let request = Request::post(url)
        .header(header::CONTENT_TYPE, kind)
        .body(Full::from(body.to_owned()))
        .unwrap();
    send_request(connection, request).await
}

async fn send_request(
    connection: &Connection,
    request: Request<Full<Bytes>>,
) -> Result<(u16, String), String> {
    let response = connection
        .request(request)
        .await
        .map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|error| error.to_string())?;
    Ok((status, String::from_utf8(body.to_bytes().to_vec()).unwrap()))
}
