//! The manifest of an export: what it contains, and digests of all of it, signed by the audit authority.

use cloakroom_core::keys::{self, AuditAuthority};
use cloakroom_crypto::{LogPublicKey, verify_log_signature};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Domain of the signature.
const DOMAIN: &str = "cloakroom export v1\n";

/// The contents of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub export: Uuid,
    /// The vault that the tokens are from.
    pub environment: String,
    pub tenant: Uuid,
    pub tenant_name: String,
    pub tenant_type: String,
    /// Only this container and those below it.
    pub container: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub reason: String,
    pub requested_by: String,
    pub approved_by: String,
    /// SHA-256 of the receiver's public key.
    pub receiver: String,
    /// When the snapshot was taken.
    pub at: Timestamp,
    pub tokens: u64,
    /// Root of a Merkle tree (RFC 6962) over the ids, in the order of the export.
    pub ids_root: String,
    pub chunks: Vec<Chunk>,
    /// The newest checkpoint of the audit log when the export began.
    pub checkpoint: Option<String>,
}

/// One line of `tokens.jwe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub tokens: u64,
    /// SHA-256 of the line, without its end.
    pub sha256: String,
}

impl Manifest {
    pub(super) fn to_text(&self) -> String {
        // Numbers, times and strings can always be serialized.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn message(text: &str) -> Vec<u8> {
    [DOMAIN.as_bytes(), text.as_bytes()].concat()
}

pub(super) async fn sign(authority: &AuditAuthority, text: &str) -> Result<String, keys::Error> {
    let signature = authority.sign(&message(text)).await?;
    Ok(hex::encode(signature))
}

pub(super) fn is_signed(authority: &[LogPublicKey], text: &str, signature: &str) -> bool {
    let Ok(signature) = hex::decode(signature.trim()) else {
        return false;
    };
    let message = message(text);
    let verifies = |key| verify_log_signature(key, &message, &signature);
    authority.iter().any(verifies)
}
