//! Tests with messages of other implementations and with modified ones.

use serde_json::Value;

use super::*;

const VECTORS: &str = include_str!("../../vectors/client_key.json");

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
fn messages_of_other_implementations_decrypt() {
    assert!(vectors().len() >= 4);
    for vector in vectors() {
        let opened = vector.key.open(&vector.message()).unwrap();

        assert_eq!(*opened.expose(), vector.plaintext);
        assert_eq!(vector.key.public_key().unwrap()[..], vector.public);
    }
}

#[test]
fn a_modified_message_is_rejected() {
    let mut vector = vectors().remove(0);
    for part in 0..vector.parts.len() {
        let whole = vector.parts[part].clone();
        let mut altered: Vec<Vec<u8>> = (0..whole.len() * 8)
            // X25519 ignores the highest bit of a public key; the authenticated header covers it.
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
            let result = vector.key.open(&vector.message());
            assert_eq!(result.err(), Some(Error::Integrity), "{part}");
        }
        vector.parts[part] = whole;
    }
    assert!(vector.key.open(&vector.message()).is_ok());
}

#[test]
fn low_order_public_keys_are_rejected() {
    // All points of low order (cr.yp.to/ecdh.html) and their non-canonical encodings. A sender of
    // one of them knows the shared secret: zero.
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
    // An attacker would encrypt under the key derived from a zero shared secret.
    let mut key = Zeroizing::new([0; 32]);
    primitives::concat_kdf(&[0; 32], [ALGORITHM, b"", b""], 256, key.as_mut_slice()).unwrap();
    let mut ciphertext = b"forged".to_vec();
    let message_key = MessageKey::new(&key, [0; 12]).unwrap();
    let tag = message_key.seal(b"", &mut ciphertext).unwrap();

    for point in points {
        let ephemeral = hex::decode(point).unwrap();
        let message = ClientMessage {
            ephemeral: &ephemeral,
            aad: b"",
            nonce: &[0; 12],
            ciphertext: &ciphertext,
            tag: tag.as_ref(),
        };
        let result = ClientKey::generate().open(&message);
        assert_eq!(result.err(), Some(Error::Integrity), "{point}");
    }
}

#[test]
fn a_message_decrypts_only_with_the_recipients_key() {
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
    let result = ClientKey::generate().open(&message);
    assert_eq!(result.err(), Some(Error::Integrity));
}

#[test]
fn a_private_key_has_exactly_32_bytes() {
    for (length, accepted) in [(0, false), (31, false), (32, true), (33, false)] {
        let key = ClientKey::from_sealed(&Sensitive::new(vec![1; length]));
        assert_eq!(key.is_ok(), accepted, "{length}");
    }
}
