//! A 3DS Server and a browser to talk to the simulator with.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use cloakroom_threeds_simulator::{Certificates, Options, Simulator};

type Connection = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The simulator with a 3DS Server that uses it.
pub(crate) struct Stage {
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

pub(crate) async fn start() -> Stage {
    start_with(|_| {}).await
}

pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path().to_owned());
    change(&mut options);
    let simulator = Simulator::start(options).await.unwrap();
    let certificates = simulator.certificates().clone();
    let results = Arc::new(Mutex::new(Vec::new()));
    let (results_url, listener) = listen(&certificates, Arc::clone(&results)).await;
    Stage {
        certified: connection(&certificates, true),
        anonymous: connection(&certificates, false),
        simulator,
        results,
        results_url,
        _folder: folder,
        _listener: listener,
    }
}

fn roots(certificates: &Certificates) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificates.ca()).unwrap())
        .unwrap();
    roots
}

fn pair(certificates: &Certificates) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_file(certificates.server_certificate()).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.server_key()).unwrap();
    (vec![certificate], key)
}

fn connection(certificates: &Certificates, shows: bool) -> Connection {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(certificates));
    let config = if shows {
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

/// Takes results like a 3DS Server: with a client's certificate only.
async fn listen(
    certificates: &Certificates,
    results: Arc<Mutex<Vec<Value>>>,
) -> (String, JoinSet<()>) {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let roots = Arc::new(roots(certificates));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .unwrap();
    let (chain, key) = pair(certificates);
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("https://{}/3ds/rreq", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, tls.clone(), Arc::clone(&results)));
        }
    });
    (url, tasks)
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, results: Arc<Mutex<Vec<Value>>>) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let results = Arc::clone(&results);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let result: Value = serde_json::from_slice(&body).unwrap();
            let mut receipt = json!({"messageType": "RRes", "resultsStatus": "01"});
            for name in [
                "messageVersion",
                "threeDSServerTransID",
                "acsTransID",
                "dsTransID",
            ] {
                receipt[name] = result[name].clone();
            }
            results.lock().unwrap().push(result);
            let body = Full::<Bytes>::from(receipt.to_string());
            Ok::<_, Infallible>(http::Response::new(body))
        }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Stage {
    /// Sends a message to a network's directory server.
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

    /// As a browser: posts a form to a page of the issuer.
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
                ask(&self.anonymous, request).await
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
        let (status, text) = ask(&self.anonymous, request).await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    pub(crate) async fn delete(&self, path: &str) -> u16 {
        let url = format!("{}{path}", self.simulator.acs_url());
        let request = Request::delete(&url).body(Full::default()).unwrap();
        ask(&self.anonymous, request).await.unwrap().0
    }

    pub(crate) fn results(&self) -> Vec<Value> {
        self.results.lock().unwrap().clone()
    }

    /// The first result, when it has arrived.
    pub(crate) async fn result(&self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(result) = self.results().first() {
                return result.clone();
            }
            assert!(Instant::now() < deadline, "no result came");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A valid AReq of a browser's payment.
    pub(crate) fn areq(&self, version: &str, number: &str) -> Value {
        let mut message = json!({
            "messageType": "AReq", "messageVersion": version, "messageCategory": "01",
            "deviceChannel": "02", "threeDSServerTransID": new_id(),
            "threeDSServerRefNumber": "ref", "threeDSServerURL": self.results_url,
            "threeDSRequestorID": "requestor", "threeDSRequestorName": "Requestor",
            "threeDSRequestorURL": "https://shop.example/", "acctNumber": number,
            "threeDSRequestorAuthenticationInd": "01", "acquirerBIN": "400001",
            "acquirerMerchantID": "mid", "mcc": "5411", "merchantCountryCode": "250",
            "merchantName": "Shop <1>", "purchaseAmount": "1234", "purchaseCurrency": "978",
            "purchaseExponent": "2", "purchaseDate": "20300101120000",
            "cardholderName": "A Cardholder", "browserAcceptHeader": "*/*",
            "browserLanguage": "en", "browserUserAgent": "test", "browserJavaEnabled": false,
            "browserColorDepth": "24", "browserScreenHeight": "800",
            "browserScreenWidth": "600", "browserTZ": "0", "threeDSCompInd": "N",
            "notificationURL": "https://vault.example/notify",
        });
        if version != "2.1.0" {
            message["browserJavascriptEnabled"] = json!(true);
        }
        if version == "2.3.1" {
            message["acceptLanguage"] = json!(["en"]);
            message["acquirerCountryCode"] = json!("250");
            message["acquirerCountryCodeSource"] = json!("01");
        }
        message
    }

    /// An AReq of a merchant alone, who may ask for a decoupled authentication.
    pub(crate) fn merchant_areq(&self, number: &str, decoupled: bool) -> Value {
        let mut message = self.areq("2.2.0", number);
        let fields = message.as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("browser"));
        for name in [
            "threeDSCompInd",
            "notificationURL",
            "threeDSRequestorAuthenticationInd",
        ] {
            fields.remove(name);
        }
        message["deviceChannel"] = json!("03");
        message["threeRIInd"] = json!("06");
        if decoupled {
            message["threeDSRequestorDecReqInd"] = json!("Y");
            message["threeDSRequestorDecMaxTime"] = json!("00010");
        }
        message
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

/// The value of a form's hidden field.
pub(crate) fn hidden(page: &str, name: &str) -> Option<String> {
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
    ask(connection, request).await
}

async fn ask(
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
