//! Client encryption: X25519 key pairs whose public half clients encrypt to, as JOSE writes it down
//! (`ECDH-ES` with `A256GCM`, RFC 7518 and RFC 8037).

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use zeroize::Zeroizing;

use crate::primitives::{self, MessageKey, NONCE_BYTES, TAG_BYTES};
use crate::{Error, KEY_BYTES, Sensitive, random};

/// The name of the cipher, which the content key is bound to.
const ALGORITHM: &[u8] = b"A256GCM";

pub const PUBLIC_KEY_BYTES: usize = 32;

/// The private half of a key pair.
///
/// Like a [`crate::Key`] it cannot be printed, cloned or serialized; the bytes are on the heap and
/// are wiped on drop. They leave it only to be sealed.
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

/// What a client encrypted, taken apart. Nothing in it is trusted.
#[derive(Clone, Copy)]
pub struct ClientMessage<'a> {
    /// The client's public key for this one message.
    pub ephemeral: &'a [u8],
    /// What is authenticated beside the ciphertext.
    pub aad: &'a [u8],
    pub nonce: &'a [u8],
    pub ciphertext: &'a [u8],
    pub tag: &'a [u8],
}

impl ClientKey {
    /// A new key pair. Every 32 bytes are a private key: the curve ignores the bits that it must.
    pub fn generate() -> Self {
        let mut bytes = Box::new(Zeroizing::new([0; KEY_BYTES]));
        random::fill(bytes.as_mut_slice());
        Self(bytes)
    }

    /// Takes back what [`ClientKey::expose_for_sealing`] gave.
    pub fn from_sealed(bytes: &Sensitive<Vec<u8>>) -> Result<Self, Error> {
        let given = bytes.expose();
        if given.len() != KEY_BYTES {
            return Err(Error::KeyLength);
        }
        let mut bytes = Box::new(Zeroizing::new([0; KEY_BYTES]));
        bytes.copy_from_slice(given);
        Ok(Self(bytes))
    }

    /// The raw private key, for sealing it and for nothing else.
    pub fn expose_for_sealing(&self) -> Sensitive<Vec<u8>> {
        Sensitive::new(self.0.to_vec())
    }

    /// The public half, raw.
    pub fn public_key(&self) -> Result<[u8; PUBLIC_KEY_BYTES], Error> {
        let public = self
            .private()
            .and_then(|private| private.compute_public_key().map_err(|_| Error::Provider))?;
        public.as_ref().try_into().map_err(|_| Error::Provider)
    }

    /// Opens what a client encrypted to the public half; anything else is [`Error::Integrity`].
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

/// The key that one message is encrypted under.
///
/// The provider refuses public keys of another length, and those whose shared secret is zero whatever
/// the private key is.
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

/// The client's side of one message. The vault only opens; this is for trying that out.
pub struct ClientSender {
    ephemeral: ClientKey,
    recipient: [u8; PUBLIC_KEY_BYTES],
}

/// What [`ClientSender::encrypt`] made.
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

    /// The public key that the message is sent with; it belongs into what is authenticated.
    pub fn ephemeral(&self) -> Result<[u8; PUBLIC_KEY_BYTES], Error> {
        self.ephemeral.public_key()
    }

    /// Encrypts the one message that this sender is for.
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
mod tests {
    use serde_json::Value;

    use super::*;

    const VECTORS: &str = include_str!("../vectors/client_key.json");

    struct Vector {
        key: ClientKey,
        public: Vec<u8>,
        parts: [Vec<u8>; 5],
        plaintext: Vec<u8>,
    }

    impl Vector {
        fn message(&self) -> ClientMessage<'_> {
            let [ephemeral, aad, nonce, ciphertext, tag] = &self.parts;
            ClientMessage {
                ephemeral,
                aad,
                nonce,
                ciphertext,
                tag,
            }
        }
    }

    fn vectors() -> Vec<Vector> {
        let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
        let read = |vector: &Value| {
            let bytes = |name: &str| hex::decode(vector[name].as_str().unwrap()).unwrap();
            Vector {
                key: ClientKey::from_sealed(&Sensitive::new(bytes("private"))).unwrap(),
                public: bytes("public"),
                parts: ["ephemeral", "aad", "nonce", "ciphertext", "tag"].map(bytes),
                plaintext: bytes("plaintext"),
            }
        };
        vectors.iter().map(read).collect()
    }

    #[test]
    fn what_other_implementations_encrypted_opens() {
        assert!(vectors().len() >= 4);
        for vector in vectors() {
            let opened = vector.key.open(&vector.message()).unwrap();

            assert_eq!(*opened.expose(), vector.plaintext);
            assert_eq!(vector.key.public_key().unwrap()[..], vector.public);
        }
    }

    #[test]
    fn no_bit_and_no_length_of_a_message_may_change() {
        let mut vector = vectors().remove(0);
        for part in 0..vector.parts.len() {
            let whole = vector.parts[part].clone();
            let mut altered: Vec<Vec<u8>> = (0..whole.len() * 8)
                // The curve ignores the highest bit of a public key; the header around it does not.
                .filter(|bit| part != 0 || *bit != 255)
                .map(|bit| {
                    let mut flipped = whole.clone();
                    flipped[bit / 8] ^= 1 << (bit % 8);
                    flipped
                })
                .collect();
            altered.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
            altered.push([&whole[..], &[0]].concat());
            for other in altered {
                vector.parts[part] = other;
                let refused = vector.key.open(&vector.message());
                assert_eq!(refused.err(), Some(Error::Integrity), "{part}");
            }
            vector.parts[part] = whole;
        }
        assert!(vector.key.open(&vector.message()).is_ok());
    }

    #[test]
    fn public_keys_that_agree_on_nothing_are_refused() {
        // Every point of small order, by its coordinate (cr.yp.to/ecdh.html), and the ones that are
        // written differently: whoever sends one of them knows the shared secret, zero.
        let points = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000080",
        ];
        // What an attacker would encrypt under: the key of a shared secret that is zero.
        let mut known = Zeroizing::new([0; 32]);
        primitives::concat_kdf(&[0; 32], [ALGORITHM, b"", b""], 256, known.as_mut_slice()).unwrap();
        let mut ciphertext = b"forged".to_vec();
        let sealing = MessageKey::new(&known, [0; 12]).unwrap();
        let tag = sealing.seal(b"", &mut ciphertext).unwrap();

        for point in points {
            let ephemeral = hex::decode(point).unwrap();
            let message = ClientMessage {
                ephemeral: &ephemeral,
                aad: b"",
                nonce: &[0; 12],
                ciphertext: &ciphertext,
                tag: tag.as_ref(),
            };
            let refused = ClientKey::generate().open(&message);
            assert_eq!(refused.err(), Some(Error::Integrity), "{point}");
        }
    }

    #[test]
    fn what_is_sent_opens_under_its_own_key_only() {
        let key = ClientKey::generate();
        let sender = ClientSender::to(key.public_key().unwrap());
        let ephemeral = sender.ephemeral().unwrap();

        let sent = sender.encrypt(b"header", b"4242").unwrap();
        let message = ClientMessage {
            ephemeral: &ephemeral,
            aad: b"header",
            nonce: &sent.nonce,
            ciphertext: &sent.ciphertext,
            tag: &sent.tag,
        };

        assert_eq!(key.open(&message).unwrap().expose(), b"4242");
        let refused = ClientKey::generate().open(&message);
        assert_eq!(refused.err(), Some(Error::Integrity));
    }

    #[test]
    fn a_private_key_has_exactly_32_bytes() {
        for (length, accepted) in [(0, false), (31, false), (32, true), (33, false)] {
            let key = ClientKey::from_sealed(&Sensitive::new(vec![1; length]));
            assert_eq!(key.is_ok(), accepted, "{length}");
        }
    }
}
