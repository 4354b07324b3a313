//! Parser for compact JWEs (RFC 7516) with ECDH-ES on X25519 and A256GCM, the only supported algorithms.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_crypto::ClientMessage;
use cloakroom_platform::api::{Object, parse_json};
use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

/// Supported headers have about 200 characters.
const HEADER_LENGTH_MAX: usize = 2_048;
/// The size limit of token data; ciphertext and plaintext have the same length.
const CIPHERTEXT_BYTES_MAX: usize = 1024 * 1024;

/// A parsed JWE, not yet decrypted.
pub(super) struct Jwe<'a> {
    pub key_id: Uuid,
    /// When the client encrypted the value, from the header `iat`.
    pub issued_at: Option<Timestamp>,
    /// The encoded header, which is authenticated as associated data.
    header: &'a str,
    ephemeral: Vec<u8>,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

/// Unknown members are ignored, as RFC 7516 requires.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: &'a str,
    #[serde(borrow)]
    enc: &'a str,
    kid: Uuid,
    epk: Object<EphemeralKey>,
    /// Seconds since 1970, possibly with a fraction.
    #[serde(default, deserialize_with = "number")]
    iat: Option<f64>,
    /// Each of these members changes how the rest is interpreted, so none is supported.
    #[serde(default, deserialize_with = "is_present")]
    zip: bool,
    #[serde(default, deserialize_with = "is_present")]
    crit: bool,
    #[serde(default, deserialize_with = "is_present")]
    apu: bool,
    #[serde(default, deserialize_with = "is_present")]
    apv: bool,
}

#[derive(Deserialize)]
struct EphemeralKey {
    kty: String,
    crv: String,
    x: String,
}

fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Rejects `null`; the default applies only if the member is absent.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

fn timestamp(seconds: f64) -> Option<Timestamp> {
    let since_epoch = SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::from_duration(since_epoch).ok()
}

impl<'a> Jwe<'a> {
    /// Parses a compact JWE; `None` if it is malformed or unsupported.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        let [header, encrypted_key, nonce, ciphertext, tag] = [(); 5].map(|()| parts.next());
        let (header, ciphertext) = (header?, ciphertext?);
        // ECDH-ES in direct key agreement mode has an empty encrypted key.
        if parts.next().is_some() || !encrypted_key?.is_empty() || header.len() > HEADER_LENGTH_MAX
        {
            return None;
        }
        let read = URL_SAFE_NO_PAD.decode(header).ok()?;
        let Object(read) =
            parse_json::<Object<Header<'_>>>(std::str::from_utf8(&read).ok()?).ok()?;
        let Object(epk) = &read.epk;
        let is_supported = read.alg == "ECDH-ES"
            && read.enc == "A256GCM"
            && epk.kty == "OKP"
            && epk.crv == "X25519"
            && !(read.zip || read.crit || read.apu || read.apv);
        // Checks the decoded size before decoding: four characters encode three bytes.
        if !is_supported || ciphertext.len() / 4 * 3 > CIPHERTEXT_BYTES_MAX {
            return None;
        }
        let issued_at = match read.iat {
            Some(seconds) => Some(timestamp(seconds)?),
            None => None,
        };
        Some(Self {
            key_id: read.kid,
            issued_at,
            header,
            ephemeral: URL_SAFE_NO_PAD.decode(&epk.x).ok()?,
            nonce: URL_SAFE_NO_PAD.decode(nonce?).ok()?,
            ciphertext: URL_SAFE_NO_PAD.decode(ciphertext).ok()?,
            tag: URL_SAFE_NO_PAD.decode(tag?).ok()?,
        })
    }

    pub(super) fn message(&self) -> ClientMessage<'_> {
        ClientMessage {
            ephemeral: &self.ephemeral,
            aad: self.header.as_bytes(),
            nonce: &self.nonce,
            ciphertext: &self.ciphertext,
            tag: &self.tag,
        }
    }
}

#[cfg(test)]
mod tests;
