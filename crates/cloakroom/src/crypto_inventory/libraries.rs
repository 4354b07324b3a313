//! The cryptographic libraries of the service, with their versions from the lock file.

/// A library, and what it is used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub name: &'static str,
    pub version: &'static str,
    pub role: &'static str,
}

/// Roles by package. A package of this list that is not in the lock file is left out.
const ROLES: &[(&str, &str)] = &[
    (
        "aws-lc-rs",
        "every primitive of the vault, and those of TLS",
    ),
    ("aws-lc-sys", "AWS-LC itself, not its FIPS build"),
    ("aws-sdk-kms", "the provider `aws_kms`"),
    ("aws-sigv4", "signs requests to AWS KMS"),
    ("cryptoki", "the provider `pkcs11`"),
    ("hmac", "SCRAM of PostgreSQL passwords, SigV4"),
    (
        "md-5",
        "linked by postgres-protocol; the database should require SCRAM",
    ),
    (
        "postgres-protocol",
        "passwords of PostgreSQL (SCRAM-SHA-256)",
    ),
    (
        "ring",
        "in the lock file only: an optional backend of rustls-webpki",
    ),
    ("rustls", "TLS 1.2 and 1.3"),
    ("rustls-webpki", "verifies certificates"),
    (
        "sha2",
        "SCRAM of PostgreSQL passwords, SigV4, channel binding",
    ),
    ("subtle", "comparison in constant time"),
    ("tokio-postgres-rustls", "TLS to PostgreSQL"),
    ("x509-cert", "reads dates of certificates"),
    ("zeroize", "wipes keys from memory"),
];

/// The libraries of this build.
pub(super) fn list() -> Vec<Library> {
    let packages = env!("CRYPTO_LIBRARIES").split(',');
    let library = |package: &'static str| {
        let (name, version) = package.split_once(' ')?;
        let role = ROLES.iter().find(|(known, _)| *known == name);
        Some(Library {
            name,
            version,
            role: role.map_or("", |(_, role)| role),
        })
    };
    packages.filter_map(library).collect()
}
