//! Client-side encryption of request bodies as JWE.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloakroom_crypto::ClientSender;
use serde_json::{Value, json};

/// Encrypts to `key`, the response of the request that created it.
pub fn encrypt(key: &Value, plaintext: &str) -> String {
    encrypt_with(key, plaintext, |_| {})
}

/// Encrypts with a modified header. The header is authenticated as sent.
pub fn encrypt_with(key: &Value, plaintext: &str, change: impl FnOnce(&mut Value)) -> String {
    let pem = key["public_key_pem"].as_str().unwrap();
    let public = STANDARD.decode(pem.lines().nth(1).unwrap()).unwrap();
    let sender = ClientSender::to(public.try_into().unwrap());
    let mut header = json!({
        "alg": "ECDH-ES",
        "kid": key["key_id"],
        "enc": "A256GCM",
        "epk": {"kty": "OKP", "crv": "X25519", "x": encode(&sender.ephemeral().unwrap())},
    });
    change(&mut header);
    let header = encode(header.to_string().as_bytes());
    let encrypted = sender
        .encrypt(header.as_bytes(), plaintext.as_bytes())
        .unwrap();
    let rest = [&encrypted.nonce[..], &encrypted.ciphertext, &encrypted.tag].map(encode);
    format!("{header}..{}", rest.join("."))
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
