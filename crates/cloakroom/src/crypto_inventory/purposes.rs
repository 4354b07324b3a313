//! What a key of each purpose does. A purpose without a description does not compile.

use cloakroom_crypto::KeyPurpose;

use super::Quantum;

/// The use of the keys of one purpose.
#[derive(Clone, Copy, Debug)]
pub struct PurposeUse {
    pub algorithm: &'static str,
    pub key_bits: u16,
    pub used_for: &'static str,
    /// What wraps the keys, or where they are.
    pub protected_by: &'static str,
    pub quantum: Quantum,
    /// The module that uses them.
    pub place: &'static str,
}

const AES: &str = "AES-256-GCM with keys derived by HKDF-SHA-256";
const HMAC: &str = "HMAC-SHA-256";
const BY_ROOT: &str = "the root key";
const BY_TENANT: &str = "the tenant's key-encryption key";

/// Describes a purpose; `None` for one that no key has any more.
pub(super) fn describe(purpose: KeyPurpose) -> Option<PurposeUse> {
    let (algorithm, used_for, protected_by, place) = row(purpose)?;
    let quantum = match purpose {
        KeyPurpose::AuditAuthority | KeyPurpose::Signing => Quantum::Forgeable,
        _ => Quantum::Resistant,
    };
    Some(PurposeUse {
        algorithm,
        key_bits: 256,
        used_for,
        protected_by,
        quantum,
        place,
    })
}

/// Algorithm, use, protection and place of a purpose.
fn row(purpose: KeyPurpose) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    Some(match purpose {
        KeyPurpose::RootKek => (
            AES,
            "wraps the key-encryption keys of tenants and the keys of the vault",
            "its provider (root_key.provider)",
            "cloakroom-custody",
        ),
        KeyPurpose::TenantKek => (AES, "wraps the other keys of a tenant", BY_ROOT, "keys"),
        KeyPurpose::Data => (
            AES,
            "encrypts tokens, token intents, client keys, 3-D Secure sessions, proxy values, webhook secrets, cursors",
            BY_TENANT,
            "keys",
        ),
        KeyPurpose::Fingerprint => (
            HMAC,
            "fingerprints of values",
            BY_TENANT,
            "tokens/attributes",
        ),
        KeyPurpose::Index => (
            "HMAC-SHA-256 with sub-keys derived by HKDF-SHA-256",
            "terms by which tokens are found",
            BY_TENANT,
            "tokens/attributes",
        ),
        KeyPurpose::Reply => (
            AES,
            "encrypts responses stored for idempotency keys",
            BY_TENANT,
            "idempotency",
        ),
        KeyPurpose::Request => (
            HMAC,
            "digests of requests with idempotency keys",
            BY_TENANT,
            "idempotency",
        ),
        KeyPurpose::Control => (
            HMAC,
            "authenticates rows that grant permissions, keysets, events, and tables of BINs and card ranges",
            BY_ROOT,
            "access",
        ),
        KeyPurpose::AuditAuthority => (
            "Ed25519",
            "certifies the daily keys with which nodes sign the audit log; signs erasure ledgers",
            BY_ROOT,
            "audit",
        ),
        KeyPurpose::Signing => (
            "AES-256-GCM; the key pair that it encrypts is RSA 2048, RSASSA-PSS with SHA-256",
            "encrypts the private key that signs webhook deliveries",
            BY_ROOT,
            "webhooks/signatures",
        ),
        KeyPurpose::SecurityCodeWrap => (
            AES,
            "wraps the keys of security codes that nodes exchange through Redis",
            BY_ROOT,
            "security_codes",
        ),
        KeyPurpose::SecurityCode => (
            AES,
            "encrypts security codes for their retention",
            "the memory of nodes; in Redis, the wrapping key of security codes",
            "security_codes",
        ),
        // Reserved: authenticated the audit log before it was signed.
        KeyPurpose::Audit => return None,
    })
}
