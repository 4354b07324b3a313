//! A server that speaks the protocol of Vault's Transit engine, over TLS, with real AES-256-GCM.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cloakroom_crypto::random_bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) const TOKEN: &str = "hvs.of-the-test";

pub(crate) struct TransitServer {
    pub(crate) address: SocketAddr,
    pub(crate) ca_file: PathBuf,
    pub(crate) folder: TempDir,
    state: Arc<Mutex<State>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) is_sealed: bool,
    pub(crate) is_throttling: bool,
    pub(crate) keys: HashMap<String, TransitKey>,
    /// The associated data of the last request, as sent.
    pub(crate) associated_data: Value,
}

#[derive(Default)]
pub(crate) struct TransitKey {
    versions: Vec<[u8; 32]>,
    pub(crate) min_decryption_version: usize,
    pub(crate) is_exportable: bool,
}

type Answer = (u16, Value);

impl TransitServer {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let signed = rcgen::generate_simple_self_signed(names).unwrap();
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, signed.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let mut task = JoinSet::new();
        task.spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            state.clone(),
        ));
        Self {
            address,
            ca_file,
            folder,
            state,
            _task: task,
        }
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }
}

impl State {
    pub(crate) fn create_key(&mut self, name: &str) {
        let key = self.keys.entry(name.to_owned()).or_default();
        if key.versions.is_empty() {
            key.versions.push(random_bytes());
        }
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, state) = (tls.clone(), state.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(|request| answer(request, &state));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: &Mutex<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let token = head.headers.get("x-vault-token");
    let is_allowed = token.is_some_and(|token| token == TOKEN);
    let (status, body) = {
        let mut state = state.lock().unwrap();
        match (state.is_sealed, state.is_throttling, is_allowed) {
            (true, _, _) => error(503, "Vault is sealed"),
            (_, true, _) => error(429, "request path \"transit\": rate limit quota exceeded"),
            (_, _, false) => error(403, "permission denied"),
            _ => route(&mut state, head.method.as_str(), head.uri.path(), &body),
        }
    };
    let text = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(text)));
    Ok(response.unwrap())
}

fn error(status: u16, message: &str) -> Answer {
    (status, json!({"errors": [message]}))
}

fn route(state: &mut State, method: &str, path: &str, body: &Value) -> Answer {
    state.associated_data = body["associated_data"].clone();
    let Some(path) = path.strip_prefix("/v1/transit/") else {
        return error(404, "no handler for route");
    };
    let segments: Vec<&str> = path.split('/').collect();
    match (method, &segments[..]) {
        ("POST" | "PUT", ["keys", name]) => {
            state.create_key(name);
            (204, Value::Null)
        }
        ("POST" | "PUT", ["keys", name, "rotate"]) => with_key(state, name, |key| {
            key.versions.push(random_bytes());
            (204, Value::Null)
        }),
        ("GET", ["keys", name]) => match state.keys.get(*name) {
            Some(key) => (200, json!({"data": description(name, key)})),
            None => error(404, ""),
        },
        ("POST" | "PUT", ["encrypt", name]) => with_key(state, name, |key| encrypt(key, body)),
        ("POST" | "PUT", ["decrypt", name]) => with_key(state, name, |key| decrypt(key, body)),
        _ => error(404, "unsupported path"),
    }
}

fn with_key(state: &mut State, name: &str, act: impl FnOnce(&mut TransitKey) -> Answer) -> Answer {
    match state.keys.get_mut(name) {
        Some(key) => act(key),
        None => error(400, "encryption key not found"),
    }
}

fn description(name: &str, key: &TransitKey) -> Value {
    json!({
        "name": name,
        "type": "aes256-gcm96",
        "latest_version": key.versions.len(),
        "min_decryption_version": key.min_decryption_version.max(1),
        "exportable": key.is_exportable,
        "allow_plaintext_backup": false,
        "deletion_allowed": false,
        "keys": {},
    })
}

fn bytes_of(body: &Value, field: &str) -> Option<Vec<u8>> {
    STANDARD
        .decode(body[field].as_str().unwrap_or_default())
        .ok()
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).unwrap())
}

fn encrypt(key: &mut TransitKey, body: &Value) -> Answer {
    let (Some(mut data), Some(aad)) = (
        bytes_of(body, "plaintext"),
        bytes_of(body, "associated_data"),
    ) else {
        return error(400, "failed to base64-decode");
    };
    let nonce: [u8; 12] = random_bytes();
    let version = key.versions.len();
    cipher(&key.versions[version - 1])
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(aad),
            &mut data,
        )
        .unwrap();
    let sealed = STANDARD.encode([&nonce[..], &data].concat());
    let ciphertext = format!("vault:v{version}:{sealed}");
    (
        200,
        json!({"data": {"ciphertext": ciphertext, "key_version": version}}),
    )
}

fn decrypt(key: &mut TransitKey, body: &Value) -> Answer {
    let invalid = || error(400, "invalid ciphertext: could not decode");
    let parse = || {
        let text = body["ciphertext"].as_str()?.strip_prefix("vault:v")?;
        let (version, sealed) = text.split_once(':')?;
        let sealed = STANDARD.decode(sealed).ok()?;
        Some((version.parse::<usize>().ok()?, sealed))
    };
    let (Some((version, mut sealed)), Some(aad)) = (parse(), bytes_of(body, "associated_data"))
    else {
        return invalid();
    };
    if version < key.min_decryption_version {
        let message = "ciphertext or signature version is disallowed by policy (too old)";
        return error(400, message);
    }
    let (Some(secret), true) = (key.versions.get(version.wrapping_sub(1)), sealed.len() > 12)
    else {
        return invalid();
    };
    let nonce = Nonce::try_assume_unique_for_key(&sealed[..12]).unwrap();
    match cipher(secret).open_in_place(nonce, Aad::from(aad), &mut sealed[12..]) {
        Ok(data) => (200, json!({"data": {"plaintext": STANDARD.encode(data)}})),
        Err(_) => error(400, "cipher: message authentication failed"),
    }
}
