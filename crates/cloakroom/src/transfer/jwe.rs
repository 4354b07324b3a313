//! Compact JWEs (RFC 7516) of files: ECDH-ES on X25519 with A256GCM, as client encryption uses them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_crypto::{ClientMessage, ClientSender, Sensitive};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::{PrivateKey, PublicKey};

/// The members that decide how a message is decrypted. `crit`, `zip`, `apu` and `apv` would change that.
#[derive(Deserialize)]
struct Header {
    alg: String,
    enc: String,
    epk: EphemeralKey,
    crit: Option<IgnoredAny>,
    zip: Option<IgnoredAny>,
    apu: Option<IgnoredAny>,
    apv: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct EphemeralKey {
    kty: String,
    crv: String,
    x: String,
}

/// Encrypts to a key; `None` if the key is not a valid point.
pub(super) fn encrypt(key: &PublicKey, plaintext: &[u8]) -> Option<String> {
    let sender = ClientSender::to(key.0);
    let ephemeral = encode(&sender.ephemeral().ok()?);
    let header = json!({
        "alg": "ECDH-ES",
        "enc": "A256GCM",
        "kid": key.fingerprint(),
        "epk": {"kty": "OKP", "crv": "X25519", "x": ephemeral},
    });
    let header = encode(header.to_string().as_bytes());
    let message = sender.encrypt(header.as_bytes(), plaintext).ok()?;
    let rest = [&message.nonce[..], &message.ciphertext, &message.tag].map(encode);
    Some(format!("{header}..{}", rest.join(".")))
}

/// Decrypts a message; `None` if it is malformed, unsupported, altered or for another key.
pub(super) fn decrypt(key: &PrivateKey, text: &str) -> Option<Sensitive<Vec<u8>>> {
    let parts: Vec<&str> = text.split('.').collect();
    let [header, "", nonce, ciphertext, tag] = parts[..] else {
        return None;
    };
    let read: Header = serde_json::from_slice(&decode(header)?).ok()?;
    let is_plain = read.crit.is_none() && read.zip.is_none();
    let is_plain = is_plain && read.apu.is_none() && read.apv.is_none();
    let is_supported = read.alg == "ECDH-ES" && read.enc == "A256GCM" && is_plain;
    if !is_supported || read.epk.kty != "OKP" || read.epk.crv != "X25519" {
        return None;
    }
    let message = ClientMessage {
        ephemeral: &decode(&read.epk.x)?,
        aad: header.as_bytes(),
        nonce: &decode(nonce)?,
        ciphertext: &decode(ciphertext)?,
        tag: &decode(tag)?,
    };
    key.key().open(&message).ok()
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
