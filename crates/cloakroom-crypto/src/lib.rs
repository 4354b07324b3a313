//! Authenticated encryption, key wrapping and keyed digests: the only crate that uses ciphers.
//!
//! A [`Key`] carries its purpose in its type, so a key that seals records cannot sign a checkpoint,
//! and a tenant key cannot be wrapped by the wrong parent. Plaintext keys leave this crate only
//! through the custody methods of [`Key`]; plaintext data is held in [`Sensitive`].
//!
//! This crate does no I/O and does not lock memory. The process disables core dumps and locks its
//! pages at startup.
//!
//! `FORMAT.md` specifies the byte formats; `vectors/` holds test vectors.
//!
//! ```
//! use cloakroom_crypto::{Data, Key, PolicyDigest, RecordContext, open, seal};
//!
//! let key = Key::<Data>::generate();
//! let context = RecordContext {
//!     environment: "test",
//!     tenant: [7; 16],
//!     kind: "token",
//!     record_id: b"9a1c",
//!     column: "data",
//!     row_version: 1,
//!     policy: PolicyDigest::new("card_number", &["/cards/"], None),
//! };
//! let sealed = seal(&key, 1, &context, b"4242424242424242")?;
//! assert_eq!(open(&key, &context, &sealed)?.expose(), b"4242424242424242");
//! # Ok::<(), cloakroom_crypto::Error>(())
//! ```

mod client_key;
mod custody;
mod digest;
mod fields;
mod key;
mod log_key;
mod merkle;
mod policy;
mod primitives;
mod purpose;
mod random;
mod record;
mod sensitive;
mod shares;
mod signature_key;
mod wrap;

#[cfg(test)]
mod vectors;

pub use client_key::{ClientKey, ClientMessage, ClientSender, PUBLIC_KEY_BYTES, SentMessage};
pub use custody::{CustodyBinding, RootId, RootWrapped};
pub use digest::{
    ClientHash, Fingerprint, blind_term, client_hmac, content_digest, fingerprint, mac,
    named_uuid_bytes, secret_digest, verify_mac,
};
pub use key::{CheckValue, KEY_BYTES, Key};
pub use log_key::{
    LOG_PUBLIC_KEY_BYTES, LOG_SIGNATURE_BYTES, LogKey, LogPublicKey, LogSignature,
    verify_log_signature,
};
pub use merkle::{Hash, LEAF_PREFIX, MerkleTree, leaf_hash, sha256};
pub use policy::{PolicyDigest, RowPolicy};
pub use primitives::equal_in_constant_time;
pub use purpose::{
    AuditAuthority, Authenticates, Control, Data, Fingerprinting, Index, KeyPurpose, Purpose,
    Reply, Request, RootKek, SealsRecords, SecurityCode, SecurityCodeWrap, Signing, TenantKek,
    Wraps,
};
pub use random::{fill as fill_random, random_base58, random_bytes, random_uuid_v4_bytes};
pub use record::{RecordContext, open, seal, sealed_key_version};
pub use sensitive::Sensitive;
pub use shares::{SHARES_MAX, Share, combine_shares, split_into_shares};
pub use signature_key::SignatureKey;
pub use wrap::{WrapContext, unwrap, wrap};
pub use zeroize::Zeroize;

/// Errors of this crate. They carry no data and little detail on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Any decryption failure. One variant for all causes gives an attacker no oracle.
    #[error("authentication failed: wrong key, wrong context or modified ciphertext")]
    Integrity,
    #[error("a context field is longer than 65535 bytes")]
    ContextTooLong,
    #[error("key material is not 32 bytes")]
    KeyLength,
    #[error("unknown key purpose")]
    UnknownPurpose,
    #[error("the cryptographic provider failed")]
    Provider,
    #[error("the threshold must be at least 2, and at most the number of shares")]
    Threshold,
    #[error("the shares have invalid or repeated numbers")]
    Shares,
}
