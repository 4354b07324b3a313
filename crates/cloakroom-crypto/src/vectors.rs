//! Committed test vectors, decrypted by this crate and by an independent implementation.

use aws_lc_rs::{aead, digest, hmac};
use serde_json::Value;

use crate::record::{Header, seal_with};
use crate::wrap::wrap_with;
use crate::{
    Control, Data, Fingerprinting, Index, Key, PolicyDigest, Purpose, RecordContext, RootId,
    RootKek, SecurityCode, SecurityCodeWrap, TenantKek, WrapContext, Wraps, blind_term,
    fingerprint, mac, open, unwrap,
};

const RECORDS: &str = include_str!("../vectors/envelope.json");
const WRAPS: &str = include_str!("../vectors/wrap.json");
const DIGESTS: &str = include_str!("../vectors/digest.json");

#[test]
fn record_vectors_match() {
    for vector in parse(RECORDS) {
        let key = key::<Data>(&vector["key"]);
        let id = bytes(&vector["record_id"]);

        let envelope = sealed_record(&vector);
        let opened = open(&key, &record_context(&vector, &id), &envelope).unwrap();

        assert_eq!(hex::encode(&envelope), text(&vector["envelope"]));
        assert_eq!(*opened.expose(), bytes(&vector["plaintext"]));
    }
}

#[test]
fn record_vectors_decrypt_with_the_independent_implementation() {
    for vector in parse(RECORDS) {
        assert_eq!(
            independent::open_record(&vector),
            bytes(&vector["plaintext"])
        );
    }
}

#[test]
fn wrap_vectors_match() {
    for vector in parse(WRAPS) {
        let wrapped = wrapped_key(&vector);
        assert_eq!(hex::encode(wrapped), text(&vector["wrapped"]));
    }
}

#[test]
fn wrap_vectors_unwrap_with_the_independent_implementation() {
    for vector in parse(WRAPS) {
        assert_eq!(independent::unwrap(&vector), bytes(&vector["key"]));
    }
}

#[test]
fn digest_vectors_match() {
    for vector in parse(DIGESTS) {
        let name = text(&vector["function"]);
        let digest = hex::encode(compute_digest(&vector));

        assert_eq!(digest, text(&vector["digest"]), "{name}");
        assert_eq!(
            independent::digest(&vector),
            bytes(&vector["digest"]),
            "{name}"
        );
    }
}

/// Fills in the outputs of vectors whose inputs were added by hand.
///
/// A changed output of an existing vector is a format change and needs a new version byte.
#[test]
#[ignore = "writes the files that the other tests read"]
fn write_vectors() {
    let write = |file: &str, text: &str, output: &str, make: fn(&Value) -> Vec<u8>| {
        let mut vectors = parse(text);
        for vector in &mut vectors {
            vector[output] = hex::encode(make(vector)).into();
        }
        let path = format!("{}/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let text = serde_json::to_string_pretty(&vectors).unwrap() + "\n";
        std::fs::write(path, text).unwrap();
    };
    write("envelope", RECORDS, "envelope", sealed_record);
    write("wrap", WRAPS, "wrapped", wrapped_key);
    write("digest", DIGESTS, "digest", compute_digest);
}

fn sealed_record(vector: &Value) -> Vec<u8> {
    let key = key::<Data>(&vector["key"]);
    let id = bytes(&vector["record_id"]);
    let header = Header {
        key_version: number(&vector["key_version"]).to_be_bytes(),
        salt: array(&vector["salt"]),
        nonce: array(&vector["nonce"]),
    };
    let context = record_context(vector, &id);
    seal_with(&key, &header, &context, &bytes(&vector["plaintext"])).unwrap()
}

fn wrapped_key(vector: &Value) -> Vec<u8> {
    match text(&vector["purpose"]) {
        "tenant_kek" => wrap_and_unwrap::<RootKek, TenantKek>(vector),
        "control" => wrap_and_unwrap::<RootKek, Control>(vector),
        "security_code" => wrap_and_unwrap::<SecurityCodeWrap, SecurityCode>(vector),
        "data" => wrap_and_unwrap::<TenantKek, Data>(vector),
        "index" => wrap_and_unwrap::<TenantKek, Index>(vector),
        other => panic!("no vector is expected for {other}"),
    }
}

fn wrap_and_unwrap<K: Wraps<P>, P: Purpose>(vector: &Value) -> Vec<u8> {
    let (kek, key) = (key::<K>(&vector["kek"]), key::<P>(&vector["key"]));
    let (salt, nonce) = (array(&vector["salt"]), array(&vector["nonce"]));
    let context = WrapContext {
        environment: text(&vector["environment"]),
        tenant: vector["tenant"].as_str().map(|_| array(&vector["tenant"])),
        version: number(&vector["version"]),
    };
    let wrapped = wrap_with(&kek, &key, &context, salt, nonce).unwrap();
    let unwrapped: Key<P> = unwrap(&kek, &context, &wrapped).unwrap();
    assert!(unwrapped.secret() == key.secret());
    wrapped
}

fn compute_digest(vector: &Value) -> Vec<u8> {
    let (secret, name) = (&vector["key"], text(&vector["name"]));
    let value = &bytes(&vector["value"])[..];
    match text(&vector["function"]) {
        "mac" => mac(&key::<Control>(secret), name, &[value, b""]).to_vec(),
        "fingerprint" => {
            let fingerprint = fingerprint(&key::<Fingerprinting>(secret), name, value);
            fingerprint.as_bytes().to_vec()
        }
        "blind_term" => blind_term(&key::<Index>(secret), name, value).to_vec(),
        "check_value" => key::<Data>(secret).check_value().as_bytes().to_vec(),
        "custody_binding" => {
            let context = WrapContext {
                environment: name,
                tenant: Some(value.try_into().unwrap()),
                version: 3,
            };
            let root = RootId::new(2, "vault/root").unwrap();
            let binding = key::<TenantKek>(secret).custody_binding(&context, &root);
            binding.as_bytes().to_vec()
        }
        other => panic!("no vector is expected for {other}"),
    }
}

fn key<P: Purpose>(secret: &Value) -> Key<P> {
    Key::from_slice(&bytes(secret)).unwrap()
}

/// Implements `FORMAT.md`: shares no code with the crate and builds HKDF from HMAC.
mod independent {
    use super::*;

    pub(super) fn open_record(vector: &Value) -> Vec<u8> {
        let envelope = bytes(&vector["envelope"]);
        assert_eq!(envelope[..2], [1, 1]);
        let policy = &vector["policy"];
        let mut policy_fields = vec![b"policy.v1".to_vec(), text(&policy["kind"]).into()];
        policy_fields.push(match policy["expires_at_micros"].as_i64() {
            Some(micros) => micros.to_be_bytes().to_vec(),
            None => vec![],
        });
        let mut containers: Vec<&str> = policy["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect();
        containers.sort();
        policy_fields.extend(containers.iter().map(|name| name.as_bytes().to_vec()));
        let policy = digest::digest(&digest::SHA256, &long_fields(&policy_fields));

        let aad = short_fields(&[
            b"vault.v1",
            text(&vector["environment"]).as_bytes(),
            &bytes(&vector["tenant"]),
            text(&vector["kind"]).as_bytes(),
            &bytes(&vector["record_id"]),
            text(&vector["column"]).as_bytes(),
            &envelope[0..1],
            &envelope[1..2],
            &envelope[2..6],
            &number(&vector["row_version"]).to_be_bytes(),
            policy.as_ref(),
        ]);
        let key = hkdf(&bytes(&vector["key"]), &envelope[6..22], b"record.v1");
        let mut plaintext = aes_open(&key, &envelope[22..34], &aad, &envelope[34..]);
        assert_eq!(plaintext.len() % 32, 0);
        while plaintext.pop() != Some(0x80) {}
        plaintext
    }

    pub(super) fn unwrap(vector: &Value) -> Vec<u8> {
        let wrapped = bytes(&vector["wrapped"]);
        assert_eq!(wrapped.len(), 86);
        let aad = short_fields(&[
            b"wrap.v1",
            text(&vector["environment"]).as_bytes(),
            &vector["tenant"]
                .as_str()
                .map_or(vec![], |_| bytes(&vector["tenant"])),
            text(&vector["purpose"]).as_bytes(),
            &wrapped[0..1],
            &wrapped[1..2],
            &number(&vector["version"]).to_be_bytes(),
            &wrapped[2..10],
        ]);
        let key = hkdf(&bytes(&vector["kek"]), &wrapped[10..26], b"wrap.v1");
        aes_open(&key, &wrapped[26..38], &aad, &wrapped[38..])
    }

    pub(super) fn digest(vector: &Value) -> Vec<u8> {
        let key = bytes(&vector["key"]);
        let (name, value) = (text(&vector["name"]).into(), bytes(&vector["value"]));
        let fields = match text(&vector["function"]) {
            "mac" => vec![b"mac.v1".to_vec(), name, value, vec![]],
            "fingerprint" => vec![b"fp.v1".to_vec(), name, value],
            "check_value" => vec![b"cloakroom key check v1".to_vec(), b"data".to_vec()],
            "custody_binding" => {
                let version = 3_u32.to_be_bytes().to_vec();
                vec![
                    b"custody.v2".to_vec(),
                    name,
                    value,
                    b"tenant_kek".to_vec(),
                    version,
                    vec![2],
                    b"vault/root".to_vec(),
                ]
            }
            _ => {
                let salt = digest::digest(&digest::SHA256, &long_fields(&[name]));
                let key = hkdf(&key, salt.as_ref(), b"index.v1");
                return hmac(&key, &value)[..16].to_vec();
            }
        };
        let length = bytes(&vector["digest"]).len();
        hmac(&key, &long_fields(&fields))[..length].to_vec()
    }

    fn short_fields(fields: &[&[u8]]) -> Vec<u8> {
        let encode = |field: &&[u8]| [&(field.len() as u16).to_be_bytes()[..], field].concat();
        fields.iter().flat_map(encode).collect()
    }

    fn long_fields(fields: &[Vec<u8>]) -> Vec<u8> {
        let encode = |field: &Vec<u8>| [&(field.len() as u64).to_be_bytes()[..], field].concat();
        fields.iter().flat_map(encode).collect()
    }

    fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
            .as_ref()
            .to_vec()
    }

    fn hkdf(secret: &[u8], salt: &[u8], info: &[u8]) -> Vec<u8> {
        hmac(&hmac(salt, secret), &[info, &[1]].concat())
    }

    fn aes_open(key: &[u8], nonce: &[u8], aad: &[u8], sealed: &[u8]) -> Vec<u8> {
        let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_256_GCM, key).unwrap());
        let nonce = aead::Nonce::try_assume_unique_for_key(nonce).unwrap();
        let mut in_out = sealed.to_vec();
        key.open_in_place(nonce, aead::Aad::from(aad), &mut in_out)
            .unwrap()
            .to_vec()
    }
}

fn record_context<'a>(vector: &'a Value, record_id: &'a [u8]) -> RecordContext<'a> {
    let policy = &vector["policy"];
    let containers: Vec<&str> = policy["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    let expiry = policy["expires_at_micros"].as_i64();
    RecordContext {
        environment: text(&vector["environment"]),
        tenant: array(&vector["tenant"]),
        kind: text(&vector["kind"]),
        record_id,
        column: text(&vector["column"]),
        row_version: number(&vector["row_version"]),
        policy: PolicyDigest::new(text(&policy["kind"]), &containers, expiry),
    }
}

fn parse(file: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(file).unwrap();
    assert!(vectors.len() >= 4);
    vectors
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).unwrap()
}

fn array<const N: usize>(value: &Value) -> [u8; N] {
    bytes(value).try_into().unwrap()
}

fn number(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}
