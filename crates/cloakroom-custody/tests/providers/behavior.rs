//! What every provider must do, and helpers to do it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cloakroom_crypto::{AuditAuthority, Key, TenantKek, WrapContext};
use cloakroom_custody::{Failure, RootKey, RootKeys};
use cloakroom_platform::config;

pub(crate) const CONTEXT: WrapContext<'static> = WrapContext {
    environment: "test",
    tenant: Some([7; 16]),
    version: 3,
};

/// The same context of a tenant's key-encryption key as associated data, by the specification of the format.
pub(crate) const CONTEXT_BYTES: &[u8] =
    b"\x00\x0ccloakroom.v2\x00\x04test\x00\x10\x07\x07\x07\x07\x07\x07\x07\x07\
    \x07\x07\x07\x07\x07\x07\x07\x07\x00\x0atenant_kek\x00\x04\x00\x00\x00\x03";

/// Loads the configured root key, as a node does when it starts.
pub(crate) fn load(config: &config::RootKey) -> RootKeys {
    RootKeys::new(RootKey::load(config).unwrap())
}

/// Wraps a new key; returns it with its wrapped form.
pub(crate) async fn wrap(roots: &RootKeys) -> Result<(Key<TenantKek>, Vec<u8>), Failure> {
    let key = Key::generate();
    let wrapped = roots.wrap(&key, &CONTEXT).await?;
    Ok((key, wrapped))
}

pub(crate) async fn unwrap(roots: &RootKeys, wrapped: &[u8]) -> Result<Key<TenantKek>, Failure> {
    roots.unwrap(wrapped, &CONTEXT).await
}

/// Round trip, restart, another context, another purpose, a flipped bit, another root id.
pub(crate) async fn check_wrapping(config: &config::RootKey) {
    let roots = load(config);
    let (key, wrapped) = wrap(&roots).await.unwrap();

    let same = unwrap(&roots, &wrapped).await.unwrap();
    let after_restart = unwrap(&load(config), &wrapped).await.unwrap();

    assert_eq!(same.check_value(), key.check_value());
    assert_eq!(after_restart.check_value(), key.check_value());
    let others = [
        WrapContext {
            environment: "production",
            ..CONTEXT
        },
        WrapContext {
            tenant: Some([8; 16]),
            ..CONTEXT
        },
        WrapContext {
            tenant: None,
            ..CONTEXT
        },
        WrapContext {
            version: 4,
            ..CONTEXT
        },
    ];
    for context in others {
        let result = roots.unwrap::<TenantKek>(&wrapped, &context).await;
        assert_eq!(result.err(), Some(Failure::Integrity), "{context:?}");
    }
    let other_purpose = roots.unwrap::<AuditAuthority>(&wrapped, &CONTEXT).await;
    assert_eq!(other_purpose.err(), Some(Failure::Integrity));
    let last = wrapped.len() - 3;
    // The root id, the binding, and the ciphertext.
    for position in [5, 4 + name_length(&wrapped), last] {
        let mut altered = wrapped.clone();
        altered[position] ^= 1;
        let result = unwrap(&roots, &altered).await.err();
        assert_eq!(result, Some(Failure::Integrity), "{position}");
    }
    let description = roots.active().describe("test").await.unwrap();
    assert!(!description.round_trip.is_zero());
}

/// Length of the root id in a wrapped key.
fn name_length(wrapped: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([wrapped[2], wrapped[3]]))
}

/// Writes a secret that only its owner can read.
pub(crate) fn write_secret(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    path
}

/// The texts of a provider's weaknesses, in one line.
pub(crate) async fn weaknesses(config: &config::RootKey) -> String {
    let description = load(config).active().describe("test").await.unwrap();
    let texts = description
        .weaknesses
        .into_iter()
        .map(|weakness| weakness.0);
    texts.collect::<Vec<String>>().join("; ")
}
