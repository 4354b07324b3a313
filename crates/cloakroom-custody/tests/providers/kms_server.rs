//! A server that speaks the protocol of AWS KMS: it verifies signatures and has states, which moto does not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cloakroom_crypto::random_bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const KEY_ID: &str = "AKIAOFTHETEST";
pub(crate) const SECRET: &str = "secret-of-the-test";
pub(crate) const ARN: &str =
    "arn:aws:kms:eu-central-1:123456789012:key/0b1d7b2c-9f64-4d3f-8a57-3f7f0c3f5a10";

pub(crate) struct KmsServer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    _task: JoinSet<()>,
}

pub(crate) struct State {
    secret: [u8; 32],
    /// An error that every request gets, such as `DisabledException`.
    pub(crate) error: Option<&'static str>,
    pub(crate) is_rotated: bool,
    pub(crate) requests: usize,
    /// The encryption context of the last request.
    pub(crate) context: Value,
}

impl KmsServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            secret: random_bytes(),
            error: None,
            is_rotated: true,
            requests: 0,
            context: Value::Null,
        }));
        let mut task = JoinSet::new();
        task.spawn(serve(listener, state.clone()));
        Self {
            address,
            state,
            _task: task,
        }
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = state.clone();
        connections.spawn(async move {
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
    let outcome = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        match (check_signature(&head, &body), state.error) {
            (Err(code), _) => Err(code),
            (Ok(()), Some(code)) => Err(code),
            (Ok(()), None) => operate(&mut state, &head, &body),
        }
    };
    let (status, code, body) = match outcome {
        Ok(body) => (200, None, body),
        Err(code) => (400, Some(code), json!({"__type": code, "message": "no"})),
    };
    let mut response = Response::builder()
        .status(status)
        .header("content-type", "application/x-amz-json-1.1");
    if let Some(code) = code {
        response = response.header("x-amzn-errortype", code);
    }
    Ok(response
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap())
}

fn operate(state: &mut State, head: &Parts, body: &[u8]) -> Result<Value, &'static str> {
    let body: Value = serde_json::from_slice(body).map_err(|_| "SerializationException")?;
    if body["KeyId"] != ARN {
        return Err("NotFoundException");
    }
    let target = head.headers.get("x-amz-target");
    let target = target
        .and_then(|target| target.to_str().ok())
        .unwrap_or_default();
    let context: BTreeMap<String, String> =
        serde_json::from_value(body["EncryptionContext"].clone()).unwrap_or_default();
    let aad = format!("{ARN}{context:?}");
    let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &state.secret).unwrap());
    let decode = |field: &str| {
        let text = body[field].as_str().unwrap_or_default();
        STANDARD.decode(text).map_err(|_| "SerializationException")
    };
    match target {
        "TrentService.Encrypt" => {
            state.context = body["EncryptionContext"].clone();
            let mut data = decode("Plaintext")?;
            let nonce: [u8; 12] = random_bytes();
            let unique = Nonce::assume_unique_for_key(nonce);
            cipher
                .seal_in_place_append_tag(unique, Aad::from(aad), &mut data)
                .unwrap();
            let blob = STANDARD.encode([&nonce[..], &data].concat());
            Ok(json!({"CiphertextBlob": blob, "KeyId": ARN}))
        }
        "TrentService.Decrypt" => {
            let mut blob = decode("CiphertextBlob")?;
            let nonce = blob.get(..12).ok_or("InvalidCiphertextException")?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).unwrap();
            let data = cipher
                .open_in_place(nonce, Aad::from(aad), &mut blob[12..])
                .map_err(|_| "InvalidCiphertextException")?;
            Ok(json!({"Plaintext": STANDARD.encode(data), "KeyId": ARN}))
        }
        "TrentService.DescribeKey" => Ok(json!({"KeyMetadata": {
            "KeyId": ARN.rsplit('/').next(), "Arn": ARN, "KeyState": "Enabled", "Enabled": true,
            "KeySpec": "SYMMETRIC_DEFAULT", "KeyUsage": "ENCRYPT_DECRYPT",
        }})),
        "TrentService.GetKeyRotationStatus" => {
            Ok(json!({"KeyRotationEnabled": state.is_rotated, "KeyId": ARN}))
        }
        _ => Err("UnknownOperationException"),
    }
}

/// Verifies a signature of version 4.
fn check_signature(head: &Parts, body: &[u8]) -> Result<(), &'static str> {
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    let fields: BTreeMap<&str, &str> = header("authorization")
        .trim_start_matches("AWS4-HMAC-SHA256 ")
        .split(',')
        .filter_map(|field| field.trim().split_once('='))
        .collect();
    let field = |name: &str| {
        fields
            .get(name)
            .copied()
            .ok_or("MissingAuthenticationToken")
    };
    let (key_id, scope) = field("Credential")?
        .split_once('/')
        .ok_or("IncompleteSignature")?;
    if key_id != KEY_ID {
        return Err("UnrecognizedClientException");
    }
    let signed_headers = field("SignedHeaders")?;
    let headers: String = signed_headers
        .split(';')
        .map(|name| format!("{name}:{}\n", header(name).trim()))
        .collect();
    let canonical = format!(
        "{}\n{}\n{}\n{headers}\n{signed_headers}\n{}",
        head.method,
        head.uri.path(),
        head.uri.query().unwrap_or_default(),
        sha256(body)
    );
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        header("x-amz-date"),
        sha256(canonical.as_bytes())
    );
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in scope.split('/') {
        key = sign(&key, part);
    }
    match hex::encode(sign(&key, &text)) == field("Signature")? {
        true => Ok(()),
        false => Err("InvalidSignatureException"),
    }
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, bytes))
}
