"""Decrypts every committed vector with an independent implementation: `pip install cryptography`, then run this file."""

import hashlib
import hmac
import json
import pathlib
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

FOLDER = pathlib.Path(__file__).parent
unhex = bytes.fromhex


def short_fields(*fields):
    return b"".join(struct.pack(">H", len(field)) + field for field in fields)


def long_fields(*fields):
    return b"".join(struct.pack(">Q", len(field)) + field for field in fields)


def derive(secret, salt, info):
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(secret)


def policy_digest(policy):
    expiry = policy["expires_at_micros"]
    expiry = b"" if expiry is None else struct.pack(">q", expiry)
    containers = sorted(name.encode() for name in policy["containers"])
    fields = long_fields(b"policy.v1", policy["kind"].encode(), expiry, *containers)
    return hashlib.sha256(fields).digest()


def open_record(vector):
    envelope = unhex(vector["envelope"])
    assert envelope[:2] == b"\x01\x01" and (len(envelope) - 50) % 32 == 0
    aad = short_fields(
        b"vault.v1",
        vector["environment"].encode(),
        unhex(vector["tenant"]),
        vector["kind"].encode(),
        unhex(vector["record_id"]),
        vector["column"].encode(),
        envelope[0:1],
        envelope[1:2],
        envelope[2:6],
        struct.pack(">I", vector["row_version"]),
        policy_digest(vector["policy"]),
    )
    key = derive(unhex(vector["key"]), envelope[6:22], b"record.v1")
    padded = AESGCM(key).decrypt(envelope[22:34], envelope[34:], aad)
    plaintext = padded.rstrip(b"\x00")
    assert plaintext[-1:] == b"\x80"
    return plaintext[:-1]


def unwrap(vector):
    wrapped = unhex(vector["wrapped"])
    assert wrapped[:2] == b"\x01\x01" and len(wrapped) == 86
    aad = short_fields(
        b"wrap.v1",
        vector["environment"].encode(),
        unhex(vector["tenant"] or ""),
        vector["purpose"].encode(),
        wrapped[0:1],
        wrapped[1:2],
        struct.pack(">I", vector["version"]),
        wrapped[2:10],
    )
    kek = derive(unhex(vector["kek"]), wrapped[10:26], b"wrap.v1")
    key = AESGCM(kek).decrypt(wrapped[26:38], wrapped[38:], aad)
    check = keyed(key, long_fields(b"cloakroom key check v1", vector["purpose"].encode()))
    assert check[:8] == wrapped[2:10]
    return key


def digest(vector):
    key, name, value = unhex(vector["key"]), vector["name"].encode(), unhex(vector["value"])
    match vector["function"]:
        case "mac":
            return keyed(key, long_fields(b"mac.v1", name, value, b""))
        case "fingerprint":
            return keyed(key, long_fields(b"fp.v1", name, value))
        case "blind_term":
            salt = hashlib.sha256(long_fields(name)).digest()
            return keyed(derive(key, salt, b"index.v1"), value)[:16]
        case "check_value":
            return keyed(key, long_fields(b"cloakroom key check v1", b"data"))[:8]
        case "custody_binding":
            version = struct.pack(">I", 3)
            root = (b"\x02", b"vault/root")
            return keyed(key, long_fields(b"custody.v2", name, value, b"tenant_kek", version, *root))


def open_message(vector):
    private = X25519PrivateKey.from_private_bytes(unhex(vector["private"]))
    assert private.public_key().public_bytes_raw() == unhex(vector["public"])
    secret = private.exchange(X25519PublicKey.from_public_bytes(unhex(vector["ephemeral"])))
    name, empty = b"A256GCM", struct.pack(">I", 0)
    info = struct.pack(">I", len(name)) + name + empty + empty + struct.pack(">I", 256)
    key = ConcatKDFHash(SHA256(), 32, info).derive(secret)
    sealed = unhex(vector["ciphertext"]) + unhex(vector["tag"])
    return AESGCM(key).decrypt(unhex(vector["nonce"]), sealed, unhex(vector["aad"]))


def keyed(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def check(file, function, expected):
    vectors = json.loads((FOLDER / file).read_text())
    for number, vector in enumerate(vectors):
        assert function(vector) == unhex(vector[expected]), f"{file}, vector {number}"
    print(f"{file}: {len(vectors)} vectors ok")


check("envelope.json", open_record, "plaintext")
check("wrap.json", unwrap, "key")
check("digest.json", digest, "digest")
check("client_key.json", open_message, "plaintext")
