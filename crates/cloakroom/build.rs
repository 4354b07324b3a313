//! Reads the versions of cryptographic libraries from the lock file, for `cloakroom crypto inventory`.

use std::path::Path;

/// Packages that implement or select cryptography in the service.
const LIBRARIES: [&str; 16] = [
    "aws-lc-rs",
    "aws-lc-sys",
    "aws-sdk-kms",
    "aws-sigv4",
    "cryptoki",
    "hmac",
    "md-5",
    "postgres-protocol",
    "ring",
    "rustls",
    "rustls-webpki",
    "sha2",
    "subtle",
    "tokio-postgres-rustls",
    "x509-cert",
    "zeroize",
];

fn main() {
    // Cargo runs build scripts in the package directory.
    let lock = Path::new("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(lock).unwrap_or_default();
    let mut versions = Vec::new();
    for package in text.split("[[package]]") {
        let value = |key: &str| {
            let line = package.lines().find(|line| line.starts_with(key))?;
            line.split('"').nth(1)
        };
        if let (Some(name), Some(version)) = (value("name = "), value("version = "))
            && LIBRARIES.contains(&name)
        {
            versions.push(format!("{name} {version}"));
        }
    }
    println!("cargo::rustc-env=CRYPTO_LIBRARIES={}", versions.join(","));
}
