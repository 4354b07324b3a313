//! Dependencies of the crates: ciphers in one crate only, and no unused ones.

use std::path::Path;

use toml::Table;

use super::Violation;
use super::code::find_word;
use super::tree::{File, Tree};

const CRYPTO: &str = "crates/cloakroom-crypto";

/// Not rustls, which implements TLS and has its own provider.
const CIPHER_CRATES: [&str; 29] = [
    "aes",
    "aes-gcm",
    "aes-gcm-siv",
    "argon2",
    "aws-lc-rs",
    "aws-lc-sys",
    "bcrypt",
    "blake3",
    "chacha20poly1305",
    "cipher",
    "curve25519-dalek",
    "ed25519-dalek",
    "getrandom",
    "hkdf",
    "hmac",
    "josekit",
    "jsonwebtoken",
    "openssl",
    "orion",
    "p256",
    "p384",
    "rand",
    "ring",
    "rsa",
    "sha1",
    "sha2",
    "sha3",
    "sodiumoxide",
    "x25519-dalek",
];

const DEV_DEPENDENCIES: &str = "dev-dependencies";

/// Crates whose tests use aws-lc-rs: key providers that the tests simulate, and a format that a test reads without the
/// code that writes it.
const TESTS_WITH_CIPHERS: [&str; 2] = [
    "crates/cloakroom-custody/Cargo.toml",
    "crates/cloakroom-tokens/Cargo.toml",
];

/// Dependencies that only enable features for other crates.
const FEATURES_ONLY: [&str; 0] = [];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| file.path.starts_with("crates") && file.path.ends_with("Cargo.toml"))
        .flat_map(|manifest| check_manifest(tree, manifest))
        .collect()
}

fn check_manifest(tree: &Tree, manifest: &File) -> Vec<Violation> {
    let violation = |name: &str, rule, advice: String| Violation {
        path: manifest.path.clone(),
        line: line_of(&manifest.text, name),
        rule,
        advice,
    };
    // Cargo reports invalid manifests.
    let table: Table = manifest.text.parse().unwrap_or_default();
    let mut found = Vec::new();
    for (section, name) in dependencies(&table) {
        let is_cipher = CIPHER_CRATES.contains(&name.as_str());
        let may_use = manifest.path.starts_with(CRYPTO) || is_for_tests(manifest, section, &name);
        if is_cipher && !may_use {
            let advice = format!("use cloakroom-crypto: only that crate may depend on `{name}`");
            found.push(violation(&name, "cipher-crate", advice));
        }
        if !FEATURES_ONLY.contains(&name.as_str()) && !is_used(tree, manifest, &name) {
            let advice = format!("remove `{name}`: no source file of the crate uses it");
            found.push(violation(&name, "unused-crate", advice));
        }
    }
    found
}

/// The sections of a manifest and the crates that they name.
fn dependencies(table: &Table) -> Vec<(&'static str, String)> {
    let sections = ["dependencies", DEV_DEPENDENCIES, "build-dependencies"];
    let named = sections.into_iter().filter_map(|section| {
        let crates = table.get(section)?.as_table()?;
        Some(crates.keys().map(move |name| (section, name.clone())))
    });
    named.flatten().collect()
}

fn is_for_tests(manifest: &File, section: &str, name: &str) -> bool {
    let is_listed = TESTS_WITH_CIPHERS
        .iter()
        .any(|path| manifest.path.as_path() == Path::new(path));
    is_listed && section == DEV_DEPENDENCIES && name == "aws-lc-rs"
}

fn is_used(tree: &Tree, manifest: &File, name: &str) -> bool {
    let Some(folder) = manifest.path.parent().and_then(|folder| folder.to_str()) else {
        return true;
    };
    let word = name.replace('-', "_");
    tree.rust(folder)
        .any(|file| !find_word(&file.text, &word).is_empty())
}

fn line_of(text: &str, name: &str) -> usize {
    text.lines()
        .position(|line| line.starts_with(name))
        .map_or(1, |line| line + 1)
}
