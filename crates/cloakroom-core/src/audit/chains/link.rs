//! What nodes sign: their certified keys, the links of chains, and the commits of batches.

use std::time::Duration;

use cloakroom_crypto::{
    Hash, LOG_SIGNATURE_BYTES, LogKey, LogPublicKey, LogSignature, sha256, verify_log_signature,
};
use cloakroom_platform::config;
use uuid::Uuid;

use crate::audit::day::{ChainId, day_of};
use crate::keys::AuthorityKey;

/// How long before midnight the key of the following day is certified: at least the longest `root_key.grace`.
pub(in crate::audit) const NEXT_KEY_LEAD: Duration = config::GRACE_MAX;

const CERTIFICATE: &[u8] = b"cloakroom log key v1";
const CHAIN: &[u8] = b"cloakroom log chain v2";
const LINK: &[u8] = b"cloakroom log link v2";
const COMMIT: &[u8] = b"cloakroom log commit v2";

/// A node's key of one day as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedKey {
    pub day: i32,
    /// Unique within the day.
    pub number: i32,
    /// The process that has the key.
    pub node: Uuid,
    pub public_key: LogPublicKey,
    /// Signature of the audit authority.
    pub certificate: LogSignature,
}

impl CertifiedKey {
    /// Whether the audit authority certified the key. A former authority is trusted up to the last day that it could
    /// certify before its successor was activated.
    pub(in crate::audit) fn is_certified(&self, authorities: &[AuthorityKey]) -> bool {
        let message = certificate_message(self.day, self.number, self.node, &self.public_key);
        authorities.iter().any(|authority| {
            let is_in_time = authority
                .until
                .is_none_or(|until| self.day <= day_of(until + NEXT_KEY_LEAD));
            is_in_time && verify_log_signature(&authority.public_key, &message, &self.certificate)
        })
    }

    /// The link before the first batch of a chain that this key signs.
    pub(in crate::audit) fn first_link(&self, chain: ChainId) -> Hash {
        first_link(chain, self.node, &self.public_key)
    }
}

/// What the audit authority signs to certify a key.
pub(in crate::audit) fn certificate_message(
    day: i32,
    number: i32,
    node: Uuid,
    public_key: &LogPublicKey,
) -> Vec<u8> {
    let mut message = CERTIFICATE.to_vec();
    message.extend(day.to_be_bytes());
    message.extend(number.to_be_bytes());
    message.extend(node.as_bytes());
    message.extend(public_key);
    message
}

pub(in crate::audit) fn first_link(chain: ChainId, node: Uuid, public_key: &LogPublicKey) -> Hash {
    let mut message = CHAIN.to_vec();
    message.extend(chain.day.to_be_bytes());
    message.extend(chain.number.to_be_bytes());
    message.extend(node.as_bytes());
    message.extend(public_key);
    sha256(&message)
}

/// The entries of one commit, as the link covers them.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct Batch {
    pub chain: ChainId,
    pub first: i32,
    pub last: i32,
    pub root: Hash,
}

impl Batch {
    /// The link of the batch, which covers everything before it.
    pub(in crate::audit) fn link(&self, before: &Hash) -> Hash {
        let mut message = [0; LINK.len() + 32 + 16 + 32];
        let numbers = [self.chain.day, self.chain.number, self.first, self.last];
        let (domain, rest) = message.split_at_mut(LINK.len());
        domain.copy_from_slice(LINK);
        rest[..32].copy_from_slice(before);
        for (field, number) in rest[32..48].chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_be_bytes());
        }
        rest[48..].copy_from_slice(&self.root);
        sha256(&message)
    }
}

/// The signature of a batch, stored in the row of its last entry.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct Commit {
    /// Sequence number of the first entry of the batch.
    pub first: i32,
    pub signature: LogSignature,
}

impl Commit {
    pub(in crate::audit) fn sign(key: &LogKey, first: i32, link: &Hash) -> Self {
        Self {
            first,
            signature: key.sign(&commit_message(link)),
        }
    }

    pub(in crate::audit) fn verifies(&self, key: &LogPublicKey, link: &Hash) -> bool {
        verify_log_signature(key, &commit_message(link), &self.signature)
    }

    pub(in crate::audit) fn to_bytes(self) -> [u8; 4 + LOG_SIGNATURE_BYTES] {
        let mut bytes = [0; 4 + LOG_SIGNATURE_BYTES];
        bytes[..4].copy_from_slice(&self.first.to_be_bytes());
        bytes[4..].copy_from_slice(&self.signature);
        bytes
    }

    pub(in crate::audit) fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, signature) = bytes.split_first_chunk()?;
        Some(Self {
            first: i32::from_be_bytes(*first),
            signature: signature.try_into().ok()?,
        })
    }
}

fn commit_message(link: &Hash) -> [u8; COMMIT.len() + 32] {
    let mut message = [0; COMMIT.len() + 32];
    message[..COMMIT.len()].copy_from_slice(COMMIT);
    message[COMMIT.len()..].copy_from_slice(link);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_authority_certifies_up_to_the_day_that_it_could_certify_before_its_end() {
        let (authority, other) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let certified = |day: i32| {
            let (number, node, public_key) = (3, Uuid::from_u128(7), [5; 32]);
            let message = certificate_message(day, number, node, &public_key);
            CertifiedKey {
                day,
                number,
                node,
                public_key,
                certificate: authority.sign(&message),
            }
        };
        let trusted = |key: &LogKey, until: Option<&str>| AuthorityKey {
            public_key: *key.public_key(),
            until: until.map(|until| until.parse().unwrap()),
        };
        // 1970-01-11 is day 10. The key of the following day is certified from noon on.
        let cases = [
            (Some("1970-01-11T00:00:00Z"), 10, true),
            (Some("1970-01-11T11:59:59Z"), 10, true),
            (Some("1970-01-11T11:59:59Z"), 11, false),
            (Some("1970-01-11T12:00:00Z"), 11, true),
            (Some("1970-01-11T23:59:59Z"), 11, true),
            (Some("1970-01-11T23:59:59Z"), 12, false),
            (None, 20_000, true),
        ];
        for (until, day, expected) in cases {
            let authorities = [trusted(&other, None), trusted(&authority, until)];
            let is_certified = certified(day).is_certified(&authorities);
            assert_eq!(is_certified, expected, "{until:?}, day {day}");
        }
        assert!(!certified(10).is_certified(&[trusted(&other, None)]));
    }
}
