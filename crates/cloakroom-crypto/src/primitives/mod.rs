//! Thin wrappers around the primitives of `aws-lc-rs`. No primitive is implemented here.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context as DigestContext, SHA256, digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac;
use aws_lc_rs::kdf::{SskdfDigestAlgorithmId, get_sskdf_digest_algorithm, sskdf_digest};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::ClientHash;

pub(crate) const SALT_BYTES: usize = 16;
pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;

/// HMAC-SHA-256 of one message (RFC 2104).
pub(crate) fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    first_32(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref())
}

/// HMAC with a hash function chosen by the client.
pub(crate) fn client_hmac(hash: ClientHash, key: &[u8], message: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        ClientHash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        ClientHash::Sha256 => hmac::HMAC_SHA256,
        ClientHash::Sha512 => hmac::HMAC_SHA512,
    };
    hmac::sign(&hmac::Key::new(algorithm, key), message)
        .as_ref()
        .to_vec()
}

/// A reusable HMAC-SHA-256 key with its inner and outer states precomputed.
pub(crate) struct HmacKey(hmac::Key);

impl HmacKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// HMAC over fields, each prefixed with its u64 length, so that no two lists collide.
    pub(crate) fn fields<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        // One buffer, because each update is a call into the provider. Zeroized, because fields may be secret.
        let mut message = Zeroizing::new(Vec::with_capacity(TYPICAL_MESSAGE_BYTES));
        for field in fields {
            message.extend_from_slice(&(field.len() as u64).to_be_bytes());
            message.extend_from_slice(field);
        }
        first_32(hmac::sign(&self.0, &message).as_ref())
    }
}

/// Most messages are smaller, so their buffer is never reallocated.
const TYPICAL_MESSAGE_BYTES: usize = 400;

/// SHA-256 over fields, each prefixed with its u64 length.
pub(crate) fn sha256_fields<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = DigestContext::new(&SHA256);
    for field in fields {
        context.update(&(field.len() as u64).to_be_bytes());
        context.update(field);
    }
    first_32(context.finish().as_ref())
}

pub(crate) fn sha256(message: &[u8]) -> [u8; 32] {
    first_32(digest(&SHA256, message).as_ref())
}

/// Derives one 256-bit key with HKDF-SHA-256.
pub(crate) fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    // One block is within HKDF's limit of 255 blocks, and the lengths match.
    #[expect(clippy::expect_used, reason = "32 bytes are one block of SHA-256")]
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[info], HKDF_SHA256)
        .and_then(|output| output.fill(key.as_mut_slice()))
        .expect("HKDF output of one block");
    key
}

/// The Concat KDF with SHA-256 as used by RFC 7518, section 4.6.2. `names` are AlgorithmID, PartyUInfo and
/// PartyVInfo; `bits` is the key length, which `key` must match.
pub(crate) fn concat_kdf(
    secret: &[u8],
    names: [&[u8]; 3],
    bits: u32,
    key: &mut [u8],
) -> Result<(), Unspecified> {
    let mut info = Vec::new();
    for name in names {
        let length = u32::try_from(name.len()).map_err(|_| Unspecified)?;
        info.extend_from_slice(&length.to_be_bytes());
        info.extend_from_slice(name);
    }
    info.extend_from_slice(&bits.to_be_bytes());
    let algorithm = get_sskdf_digest_algorithm(SskdfDigestAlgorithmId::Sha256);
    sskdf_digest(algorithm.ok_or(Unspecified)?, secret, &info, key)
}

/// AES-256-GCM under a key that encrypts a single message.
pub(crate) struct MessageKey {
    key: LessSafeKey,
    nonce: [u8; NONCE_BYTES],
}

impl MessageKey {
    pub(crate) fn new(key: &[u8; 32], nonce: [u8; NONCE_BYTES]) -> Result<Self, Unspecified> {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?);
        Ok(Self { key, nonce })
    }

    /// Encrypts `in_out` and returns the tag. Consumes the key, so that it encrypts only once.
    pub(crate) fn seal(
        self,
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<impl AsRef<[u8]> + use<>, Unspecified> {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        self.key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), in_out)
    }

    /// Decrypts `ciphertext` into `out`, which has the same length. On failure the content of `out` is unspecified.
    pub(crate) fn open(
        self,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_BYTES],
        out: &mut [u8],
    ) -> Result<(), Unspecified> {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        self.key
            .open_separate_gather(nonce, Aad::from(aad), ciphertext, tag, out)
    }
}

/// Compares in constant time. The lengths are not secret.
pub fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

fn first_32(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(&bytes[..32]);
    array
}

#[cfg(test)]
mod tests;
