//! Compares the inventory with the sources and the lock file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// Crates of tests, benchmarks and simulators: nothing of them runs in the service.
const NOT_THE_SERVICE: [&str; 10] = [
    "cloakroom-bench",
    "cloakroom-devtools",
    "cloakroom-faults",
    "cloakroom-processor-simulator",
    "cloakroom-scratch",
    "cloakroom-testkit",
    "cloakroom-threeds-simulator",
    "xtask",
    // Listed by the packages of the lock file.
    "target",
    "fuzz",
];

/// Crates whose use is cryptography, as they are named in sources.
const CRYPTO_CRATES: [&str; 20] = [
    "aes",
    "aes_gcm",
    "argon2",
    "aws_lc_rs",
    "aws_sdk_kms",
    "blake3",
    "chacha20poly1305",
    "cryptoki",
    "ed25519_dalek",
    "hkdf",
    "hmac",
    "hyper_rustls",
    "p256",
    "ring",
    "rsa",
    "rustls",
    "sha2",
    "subtle",
    "tokio_postgres_rustls",
    "tokio_rustls",
];

/// Beginnings of the names by which aws-lc-rs selects algorithms.
const ALGORITHMS: [&str; 18] = [
    "AES_", "CHACHA20", "ECDH_", "ECDSA_", "ED25519", "HKDF_", "HMAC_", "ML_DSA", "ML_KEM",
    "MLKEM", "PBKDF2_", "PQDSA", "RSA_", "SHA1", "SHA2", "SHA3", "SHA5", "X25519",
];

/// Packages of cryptography that may be in a lock file.
const CRYPTO_PACKAGES: [&str; 32] = [
    "aes",
    "aes-gcm",
    "argon2",
    "aws-lc-rs",
    "aws-lc-sys",
    "aws-sigv4",
    "bcrypt",
    "blake2",
    "blake3",
    "chacha20poly1305",
    "curve25519-dalek",
    "ed25519-dalek",
    "hkdf",
    "hmac",
    "jsonwebtoken",
    "md-5",
    "openssl",
    "p256",
    "p384",
    "pbkdf2",
    "ring",
    "rsa",
    "rustls",
    "rustls-webpki",
    "scrypt",
    "sha1",
    "sha2",
    "sha3",
    "subtle",
    "x25519-dalek",
    "x509-cert",
    "zeroize",
];

/// The inventory names algorithms and uses none.
const OWN: &str = "cloakroom/src/crypto_inventory/";

fn crates_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Source files of the service with their code, without tests.
fn sources() -> Vec<(String, String)> {
    let root = crates_folder();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let relative = path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let is_left_out = NOT_THE_SERVICE.contains(&name.as_str())
                || [
                    "tests",
                    "examples",
                    "benches",
                    "tests.rs",
                    "vectors.rs",
                    "build.rs",
                ]
                .contains(&name.as_str());
            if is_left_out {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") {
                found.push((relative, code(&std::fs::read_to_string(&path).unwrap())));
            }
        }
    }
    found
}

/// The text before the test module, without comments.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

fn words(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect()
}

/// Crates that a file uses: names that a path begins with.
fn crypto_crates(code: &str) -> Vec<&'static str> {
    let is_used = |name: &&&str| {
        let path = format!("{name}::");
        code.match_indices(&path).any(|(at, _)| {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            // `self::hmac::` and `crypto::aws_lc_rs::` are modules.
            !before.is_alphanumeric() && before != '_' && before != ':'
        })
    };
    CRYPTO_CRATES.iter().filter(is_used).copied().collect()
}

fn places() -> BTreeSet<&'static str> {
    let primitives = PRIMITIVES.iter().flat_map(|it| it.places);
    let connections = CONNECTIONS.iter().flat_map(|it| it.places);
    primitives.chain(connections).copied().collect()
}

#[test]
fn every_file_that_uses_a_cryptographic_library_is_in_the_inventory() {
    let places = places();
    let unlisted: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| !places.contains(path.as_str()) && !path.starts_with(OWN))
        .filter_map(|(path, code)| {
            let crates = crypto_crates(code);
            (!crates.is_empty()).then(|| format!("{path} uses {crates:?}"))
        })
        .collect();
    assert!(
        unlisted.is_empty(),
        "add them to primitives.rs or transport.rs: {unlisted:#?}"
    );
}

#[test]
fn every_algorithm_of_the_library_is_in_the_inventory() {
    let mut found = BTreeSet::new();
    let mut unlisted = Vec::new();
    for (path, code) in sources() {
        let is_own = path.starts_with(OWN);
        if is_own || !crypto_crates(&code).contains(&"aws_lc_rs") {
            continue;
        }
        for word in words(&code) {
            let is_constant = word
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            if !is_constant || !ALGORITHMS.iter().any(|begin| word.starts_with(begin)) {
                continue;
            }
            let is_listed = PRIMITIVES
                .iter()
                .any(|it| it.symbols.contains(&word) && it.places.contains(&path.as_str()));
            if !is_listed {
                unlisted.push(format!("{word} in {path}"));
            }
            found.insert(word.to_owned());
        }
    }
    assert!(
        unlisted.is_empty(),
        "add them to primitives.rs: {unlisted:#?}"
    );
    for symbol in PRIMITIVES.iter().flat_map(|it| it.symbols) {
        assert!(found.contains(*symbol), "no source uses {symbol} any more");
    }
}

#[test]
fn every_listed_file_exists() {
    for place in places() {
        assert!(crates_folder().join(place).is_file(), "{place}");
    }
}

#[test]
fn every_cryptographic_package_of_the_lock_file_is_in_the_inventory() {
    let lock = std::fs::read_to_string(crates_folder().join("../Cargo.lock")).unwrap();
    let listed = libraries::list();
    for name in CRYPTO_PACKAGES {
        let is_locked = lock.contains(&format!("\nname = \"{name}\"\n"));
        let is_listed = listed.iter().any(|library| library.name == name);
        assert_eq!(is_locked, is_listed, "{name}: build.rs and libraries.rs");
    }
    for library in listed {
        assert_ne!(library.role, "", "{}", library.name);
    }
}

#[test]
fn every_purpose_is_described_except_the_reserved_one() {
    let without: Vec<_> = KeyPurpose::ALL
        .into_iter()
        .filter(|purpose| purposes::describe(*purpose).is_none())
        .collect();
    assert_eq!(without, [KeyPurpose::Audit]);
}

#[test]
fn tls_offers_aead_cipher_suites_only() {
    let offered = transport::offered();
    for suite in &offered.cipher_suites {
        assert!(
            suite.contains("GCM") || suite.contains("CHACHA20_POLY1305"),
            "{suite}"
        );
    }
    assert!(offered.is_post_quantum, "{:?}", offered.key_exchange);
}
