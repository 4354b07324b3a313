//! The provider's primitives in the few shapes this crate uses; nothing is built by hand.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context as DigestContext, SHA256};
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

/// HMAC-SHA-256 of one message, as published.
pub(crate) fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    first_32(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref())
}

/// HMAC with the hash that a client chose.
pub(crate) fn hmac_of(hash: ClientHash, key: &[u8], message: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        ClientHash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        ClientHash::Sha256 => hmac::HMAC_SHA256,
        ClientHash::Sha512 => hmac::HMAC_SHA512,
    };
    hmac::sign(&hmac::Key::new(algorithm, key), message)
        .as_ref()
        .to_vec()
}

/// A key that is used for HMAC-SHA-256 again and again: half of the work is done once.
pub(crate) struct HmacKey(hmac::Key);

impl HmacKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// HMAC over fields, each behind a u64 length, so that every list has its own digest.
    pub(crate) fn fields<'a>(&self, fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        // In one piece, because each piece costs a call. What it holds may be secret.
        let mut message = Zeroizing::new(Vec::with_capacity(USUAL_MESSAGE_BYTES));
        for field in fields {
            message.extend_from_slice(&(field.len() as u64).to_be_bytes());
            message.extend_from_slice(field);
        }
        first_32(hmac::sign(&self.0, &message).as_ref())
    }
}

/// Most fields together have fewer bytes.
const USUAL_MESSAGE_BYTES: usize = 400;

/// SHA-256 over fields, each behind a u64 length.
pub(crate) fn sha256_fields<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = DigestContext::new(&SHA256);
    for field in fields {
        context.update(&(field.len() as u64).to_be_bytes());
        context.update(field);
    }
    first_32(context.finish().as_ref())
}

/// HKDF-SHA-256 to one 256-bit key.
pub(crate) fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    // One block of output is always within HKDF's limit of 255, and the lengths match.
    #[expect(clippy::expect_used, reason = "32 bytes are one block of SHA-256")]
    Salt::new(HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[info], HKDF_SHA256)
        .and_then(|output| output.fill(key.as_mut_slice()))
        .expect("hkdf yields one block");
    key
}

/// The Concat KDF with SHA-256 as RFC 7518, section 4.6.2, fills it in: `names` are the algorithm and
/// both parties, `bits` is what the key is for and `key` has room for.
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

/// AES-256-GCM under a key that is used for this one message.
pub(crate) struct MessageKey {
    key: LessSafeKey,
    nonce: [u8; NONCE_BYTES],
}

impl MessageKey {
    pub(crate) fn new(key: &[u8; 32], nonce: [u8; NONCE_BYTES]) -> Result<Self, Unspecified> {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?);
        Ok(Self { key, nonce })
    }

    /// Encrypts `in_out` and returns the tag. A message key seals once, hence `self`.
    pub(crate) fn seal(
        self,
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<impl AsRef<[u8]> + use<>, Unspecified> {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        self.key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), in_out)
    }

    /// Decrypts `ciphertext` into `out`, which is of the same length and means nothing on failure.
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

/// Compares without telling where two secrets differ; their lengths are no secret.
pub fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

fn first_32(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(&bytes[..32]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        hex::decode(text).unwrap()
    }

    #[test]
    fn hkdf_yields_the_published_keys() {
        // RFC 5869, A.1 to A.3; our keys are the first block of each output.
        let up = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
        let cases = [
            (
                vec![0x0b; 22],
                up(0x00, 0x0c),
                up(0xf0, 0xf9),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
            ),
            (
                up(0x00, 0x4f),
                up(0x60, 0xaf),
                up(0xb0, 0xff),
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c",
            ),
            (
                vec![0x0b; 22],
                vec![],
                vec![],
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d",
            ),
        ];
        for (secret, salt, info, key) in cases {
            assert_eq!(hex::encode(*derive(&secret, &salt, &info)), key);
        }
    }

    #[test]
    fn hmac_yields_the_published_digests() {
        // RFC 4231, cases 1, 2, 3, 4, 6 and 7 (case 5 truncates).
        let long = "This is a test using a larger than block-size key and a larger than \
                    block-size data. The key needs to be hashed before being used by the HMAC \
                    algorithm.";
        let cases = [
            (
                vec![0x0b; 20],
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?".to_vec(),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 20],
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                (1..=25).collect(),
                vec![0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                vec![0xaa; 131],
                long.as_bytes().to_vec(),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, message, digest) in cases {
            assert_eq!(hex::encode(hmac(&key, &message)), digest);
        }
    }

    #[test]
    fn concat_kdf_yields_the_published_key() {
        // RFC 7518, appendix C: the shared secret of Alice and Bob, for 128 bits.
        let secret = [
            158, 86, 217, 29, 129, 113, 53, 211, 114, 131, 66, 131, 191, 132, 38, 156, 251, 49,
            110, 163, 218, 128, 106, 72, 246, 218, 167, 121, 140, 254, 144, 196,
        ];
        let mut key = [0; 16];

        concat_kdf(&secret, [b"A128GCM", b"Alice", b"Bob"], 128, &mut key).unwrap();

        let expected = [
            86, 170, 141, 234, 248, 35, 109, 32, 92, 34, 40, 205, 113, 167, 16, 26,
        ];
        assert_eq!(key, expected);
    }

    #[test]
    fn aes_gcm_yields_the_published_ciphertexts() {
        // McGrew and Viega, "The Galois/Counter Mode of Operation", cases 13, 14 and 16.
        let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
        let cases = [
            (
                &*"00".repeat(32),
                &*"00".repeat(12),
                "",
                "",
                "",
                "530f8afbc74536b9a963b4f1c4cb738b",
            ),
            (
                &*"00".repeat(32),
                &*"00".repeat(12),
                "",
                &*"00".repeat(16),
                "cea7403d4d606b6e074ec5d3baf39d18",
                "d0d1c8a799996bf0265b98b5d48ab919",
            ),
            (
                key,
                "cafebabefacedbaddecaf888",
                "feedfacedeadbeeffeedfacedeadbeefabaddad2",
                "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                 1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ];
        for (key, nonce, aad, plaintext, ciphertext, tag) in cases {
            let message_key = || {
                let key = bytes(key).try_into().unwrap();
                MessageKey::new(&key, bytes(nonce).try_into().unwrap()).unwrap()
            };
            let mut in_out = bytes(plaintext);
            let sealed_tag = message_key().seal(&bytes(aad), &mut in_out).unwrap();
            assert_eq!(hex::encode(&in_out), ciphertext);
            assert_eq!(hex::encode(sealed_tag.as_ref()), tag);

            let mut opened = vec![0; in_out.len()];
            let tag = bytes(tag).try_into().unwrap();
            message_key()
                .open(&bytes(aad), &in_out, &tag, &mut opened)
                .unwrap();
            assert_eq!(hex::encode(opened), plaintext);
        }
    }

    #[test]
    fn equality_looks_at_every_byte() {
        let secret = [7; 40];
        assert!(equal_in_constant_time(&secret, &secret.clone()));
        for position in 0..secret.len() {
            let mut other = secret;
            other[position] ^= 1;
            assert!(!equal_in_constant_time(&secret, &other), "{position}");
        }
        assert!(!equal_in_constant_time(&secret, &secret[..39]));
    }
}
