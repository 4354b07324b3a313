//! Every cryptographic primitive of the service, with the files that use it.

use super::Quantum;

/// An algorithm, and where it is used.
#[derive(Clone, Copy, Debug)]
pub struct Primitive {
    pub algorithm: &'static str,
    /// Bits of the key; `None` for digests.
    pub key_bits: Option<u16>,
    /// A package of the lock file.
    pub library: &'static str,
    pub used_for: &'static str,
    pub quantum: Quantum,
    /// The names by which the library selects the algorithm.
    pub symbols: &'static [&'static str],
    /// Source files below `crates`.
    pub places: &'static [&'static str],
}

const AWS_LC: &str = "aws-lc-rs";
const PRIMITIVES_FILE: &str = "cloakroom-crypto/src/primitives/mod.rs";

/// All primitives, except those of TLS.
pub const PRIMITIVES: &[Primitive] = &[
    Primitive {
        algorithm: "AES-256-GCM, one derived key per message, 96-bit random nonce, 128-bit tag",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "encryption of values, wrapping of keys, decryption of what clients encrypted",
        quantum: Quantum::Resistant,
        symbols: &["AES_256_GCM"],
        places: &[PRIMITIVES_FILE, "cloakroom-crypto/src/record/mod.rs"],
    },
    Primitive {
        algorithm: "HKDF-SHA-256 (RFC 5869)",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "the key of one message from a data or wrapping key; sub-keys of search expressions",
        quantum: Quantum::Resistant,
        symbols: &["HKDF_SHA256"],
        places: &[PRIMITIVES_FILE],
    },
    Primitive {
        algorithm: "HMAC-SHA-256",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "digests of API keys and session nonces, rows that grant permissions, fingerprints, index terms, \
                   check values, custody bindings, Standard Webhooks signatures, the `hmac` filter of expressions",
        quantum: Quantum::Resistant,
        symbols: &["HMAC_SHA256"],
        places: &[PRIMITIVES_FILE],
    },
    Primitive {
        algorithm: "HMAC-SHA-1 and HMAC-SHA-512, only if a client's expression selects them",
        key_bits: None,
        library: AWS_LC,
        used_for: "the `hmac` filter of expressions, with a key that the client supplies; protects nothing in the vault",
        quantum: Quantum::Resistant,
        symbols: &["HMAC_SHA1_FOR_LEGACY_USE_ONLY", "HMAC_SHA512"],
        places: &[PRIMITIVES_FILE],
    },
    Primitive {
        algorithm: "SHA-256",
        key_bits: None,
        library: AWS_LC,
        used_for: "API keys and other secrets of at least 128 random bits, digests bound to encrypted values, the Merkle trees and chains of the audit log, access states",
        quantum: Quantum::Resistant,
        symbols: &["SHA256"],
        places: &[PRIMITIVES_FILE, "cloakroom-crypto/src/merkle.rs"],
    },
    Primitive {
        algorithm: "X25519 (ECDH-ES of RFC 7518 and 8037) with the Concat KDF, SHA-256",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "client encryption and files of imports and exports: JWE with `ECDH-ES` and `A256GCM`",
        quantum: Quantum::HarvestNow,
        symbols: &["X25519"],
        places: &["cloakroom-crypto/src/client_key/mod.rs"],
    },
    Primitive {
        algorithm: "Ed25519 (RFC 8032)",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "signatures of the audit log, its checkpoints and the erasure ledger; certificates of nodes' keys",
        quantum: Quantum::Forgeable,
        symbols: &["ED25519"],
        places: &["cloakroom-crypto/src/log_key.rs"],
    },
    Primitive {
        algorithm: "RSASSA-PSS with SHA-256",
        key_bits: Some(2048),
        library: AWS_LC,
        used_for: "the signature `BT-SIGNATURE` of webhook deliveries",
        quantum: Quantum::Forgeable,
        symbols: &["RSA_PSS_SHA256"],
        places: &["cloakroom-crypto/src/signature_key.rs"],
    },
    Primitive {
        algorithm: "random numbers of AWS-LC (AES-256-CTR DRBG)",
        key_bits: Some(256),
        library: AWS_LC,
        used_for: "keys, nonces, salts, API keys, ids",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &["cloakroom-crypto/src/random.rs"],
    },
    Primitive {
        algorithm: "Shamir's secret sharing over GF(2^8)",
        key_bits: Some(256),
        library: "cloakroom-crypto",
        used_for: "shares of the root key for custodians",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &["cloakroom-crypto/src/shares.rs"],
    },
    Primitive {
        algorithm: "comparison in constant time",
        key_bits: None,
        library: "subtle",
        used_for: "digests of API keys, MACs and nonces",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &[PRIMITIVES_FILE, "cloakroom-threeds/src/browser/hosted.rs"],
    },
    Primitive {
        algorithm: "AES-256-GCM inside an HSM (PKCS#11 `CKM_AES_GCM`)",
        key_bits: Some(256),
        library: "cryptoki",
        used_for: "wrapping with a root key of the provider `pkcs11`",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &["cloakroom-custody/src/pkcs11/session.rs"],
    },
    Primitive {
        algorithm: "AES-256-GCM inside AWS KMS; requests signed with HMAC-SHA-256 (SigV4)",
        key_bits: Some(256),
        library: "aws-sdk-kms",
        used_for: "wrapping with a root key of the provider `aws_kms`",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &["cloakroom-custody/src/aws_kms.rs"],
    },
    Primitive {
        algorithm: "AES-256-GCM inside Vault or OpenBao Transit (`aes256-gcm96`)",
        key_bits: Some(256),
        library: "rustls",
        used_for: "wrapping with a root key of the provider `transit`",
        quantum: Quantum::Resistant,
        symbols: &[],
        places: &["cloakroom-custody/src/transit/client.rs"],
    },
];

/// Cryptography that has no key of the vault.
pub const STATEMENTS: &[(&str, &str)] = &[
    (
        "backups",
        "Copies of the database: values are encrypted under the keys above, wrapped keys are in the copy, the root key is \
         not. Cloakroom adds no other encryption.",
    ),
    (
        "exports of the audit log",
        "Signed (Ed25519), not encrypted: entries contain ids, never values.",
    ),
    (
        "PostgreSQL",
        "TLS if database.ca_file is set; passwords with SCRAM-SHA-256 (postgres-protocol, sha2, hmac).",
    ),
    (
        "Redis",
        "TLS if redis.ca_file is set. Keys of security codes in it are wrapped with AES-256-GCM; counters are keyed digests.",
    ),
    (
        "passwords",
        "None are stored. API keys have at least 128 random bits; only SHA-256 digests of the whole key are stored.",
    ),
    (
        "memory",
        "Freed memory is zeroized. The cryptographic module is AWS-LC without its FIPS build.",
    ),
];
