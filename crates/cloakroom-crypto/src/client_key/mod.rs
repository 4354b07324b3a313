//! Client-side encryption: X25519 key pairs for JWE with `ECDH-ES` and `A256GCM` (RFC 7518, RFC 8037).

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use zeroize::Zeroizing;

use crate::primitives::{self, MessageKey, NONCE_BYTES, TAG_BYTES};
use crate::{Error, KEY_BYTES, Sensitive, random};

/// The `enc` algorithm, bound into the derived content key.
const ALGORITHM: &[u8] = b"A256GCM";

pub const PUBLIC_KEY_BYTES: usize = 32;

/// The private half of a key pair.
///
/// Like a [`crate::Key`] it cannot be printed, cloned or serialized; its bytes are on the heap and
/// zeroized on drop. They are exported only for sealing.
///
/// ```compile_fail,E0277
/// let key = cloakroom_crypto::ClientKey::generate();
/// let _ = format!("{key:?}");
/// ```
/// ```compile_fail,E0599
/// let key = cloakroom_crypto::ClientKey::generate();
/// let _ = key.clone();
/// ```
pub struct ClientKey(Box<Zeroizing<[u8; KEY_BYTES]>>);

/// The parts of a client's JWE. All of them are untrusted.
#[derive(Clone, Copy)]
pub struct ClientMessage<'a> {
    /// The client's public key for this one message.
    pub ephemeral: &'a [u8],
    /// Additional authenticated data: the encoded header.
    pub aad: &'a [u8],
    pub nonce: &'a [u8],
    pub ciphertext: &'a [u8],
    pub tag: &'a [u8],
}

impl ClientKey {
    /// Generates a key pair. Any 32 bytes are a valid private key: X25519 clamps them.
    pub fn generate() -> Self {
        let mut bytes = Box::new(Zeroizing::new([0; KEY_BYTES]));
        random::fill(bytes.as_mut_slice());
        Self(bytes)
    }

    /// Imports the bytes that [`ClientKey::expose_for_sealing`] exported.
    pub fn from_sealed(bytes: &Sensitive<Vec<u8>>) -> Result<Self, Error> {
        let raw = bytes.expose();
        if raw.len() != KEY_BYTES {
            return Err(Error::KeyLength);
        }
        let mut bytes = Box::new(Zeroizing::new([0; KEY_BYTES]));
        bytes.copy_from_slice(raw);
        Ok(Self(bytes))
    }

    /// The raw private key, only for sealing it.
    pub fn expose_for_sealing(&self) -> Sensitive<Vec<u8>> {
        Sensitive::new(self.0.to_vec())
    }

    /// The raw public key.
    pub fn public_key(&self) -> Result<[u8; PUBLIC_KEY_BYTES], Error> {
        let public = self
            .private()
            .and_then(|private| private.compute_public_key().map_err(|_| Error::Provider))?;
        public.as_ref().try_into().map_err(|_| Error::Provider)
    }

    /// Decrypts a message encrypted to the public key; any failure is [`Error::Integrity`].
    pub fn open(&self, message: &ClientMessage<'_>) -> Result<Sensitive<Vec<u8>>, Error> {
        let nonce: [u8; NONCE_BYTES] = message.nonce.try_into().map_err(|_| Error::Integrity)?;
        let tag: &[u8; TAG_BYTES] = message.tag.try_into().map_err(|_| Error::Integrity)?;
        let key = content_key(&self.private()?, message.ephemeral)?;

        let mut plaintext = Sensitive::new(vec![0; message.ciphertext.len()]);
        MessageKey::new(&key, nonce)
            .and_then(|key| key.open(message.aad, message.ciphertext, tag, plaintext.expose_mut()))
            .map_err(|_| Error::Integrity)?;
        Ok(plaintext)
    }

    fn private(&self) -> Result<PrivateKey, Error> {
        PrivateKey::from_private_key(&X25519, self.0.as_slice()).map_err(|_| Error::Provider)
    }
}

/// Derives the content encryption key of one message.
///
/// The provider rejects public keys of the wrong length and low-order points, whose shared secret is
/// zero for every private key.
fn content_key(private: &PrivateKey, public: &[u8]) -> Result<Zeroizing<[u8; 32]>, Error> {
    let public = UnparsedPublicKey::new(&X25519, public);
    agree(private, public, Error::Integrity, |secret| {
        let bits = 8 * KEY_BYTES as u32;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        primitives::concat_kdf(secret, [ALGORITHM, b"", b""], bits, key.as_mut_slice())
            .map_err(|_| Error::Integrity)?;
        Ok(key)
    })
}

/// The sender's side of one message: an export, and clients in tests.
pub struct ClientSender {
    ephemeral: ClientKey,
    recipient: [u8; PUBLIC_KEY_BYTES],
}

/// Output of [`ClientSender::encrypt`].
pub struct SentMessage {
    pub nonce: [u8; NONCE_BYTES],
    pub ciphertext: Vec<u8>,
    pub tag: [u8; TAG_BYTES],
}

impl ClientSender {
    pub fn to(recipient: [u8; PUBLIC_KEY_BYTES]) -> Self {
        Self {
            ephemeral: ClientKey::generate(),
            recipient,
        }
    }

    /// The ephemeral public key, which the authenticated header must contain.
    pub fn ephemeral(&self) -> Result<[u8; PUBLIC_KEY_BYTES], Error> {
        self.ephemeral.public_key()
    }

    /// Encrypts the message. Consumes the sender, because an ephemeral key is for one message.
    pub fn encrypt(self, aad: &[u8], plaintext: &[u8]) -> Result<SentMessage, Error> {
        let nonce = random::random_bytes();
        let key = content_key(&self.ephemeral.private()?, &self.recipient)?;
        let mut ciphertext = plaintext.to_vec();
        let tag = MessageKey::new(&key, nonce)
            .and_then(|key| key.seal(aad, &mut ciphertext))
            .map_err(|_| Error::Provider)?;
        Ok(SentMessage {
            nonce,
            ciphertext,
            tag: tag.as_ref().try_into().map_err(|_| Error::Provider)?,
        })
    }
}

#[cfg(test)]
mod tests;
