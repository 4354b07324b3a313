//! Checkpoints of the audit log as signed notes, in the format of C2SP (<https://c2sp.org/signed-note>).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cloakroom_crypto::{Hash, LogKey, LogPublicKey, sha256, verify_log_signature};
use jiff::Timestamp;

use crate::audit::access_summary::AccessSummary;
use crate::audit::link::CertifiedKey;
use crate::keys::AuthorityKey;

const ORIGIN: &str = "cloakroom.audit/";
const SIGNATURE_START: &str = "\u{2014} ";
/// Type of Ed25519 signatures in key ids of notes.
const ED25519: u8 = 1;

/// The content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::audit) struct Checkpoint {
    /// Environment of the vault.
    pub environment: String,
    /// Counts from 1 without gaps.
    pub number: i64,
    /// Merkle tree hash over heads and keys.
    pub root: Hash,
    /// Hash of the note before this one; zeros in the first.
    pub previous: Hash,
    pub at: Timestamp,
    pub access: AccessSummary,
    /// Entries of earlier days may have been removed by retention.
    pub retained_from: i32,
    /// Days up to this one do not grow any more: every chain of theirs is closed.
    pub closed_through: i32,
    /// The key that signs.
    pub key: CertifiedKey,
}

/// The time that a note states, which nothing has verified.
pub(in crate::audit) fn time_of(note: &str) -> Option<Timestamp> {
    let time = note.lines().find_map(|line| line.strip_prefix("time "));
    time?.parse().ok()
}

/// The first retained day that a note states, which nothing has verified.
pub(in crate::audit) fn retained_from_of(note: &str) -> Option<i32> {
    let day = note
        .lines()
        .find_map(|line| line.strip_prefix("retained-from "));
    day?.parse().ok()
}

impl Checkpoint {
    fn name(&self) -> String {
        format!("{ORIGIN}{}", self.environment)
    }

    /// The signed text.
    fn body(&self) -> String {
        let key = &self.key;
        let mut text = String::with_capacity(600);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{}\n{}\n{}\nprevious {}\ntime {}\naccess {} {}\nretained-from {}\nclosed-through {}\nkey {} {} {} {} {}\n",
            self.name(),
            self.number,
            BASE64.encode(self.root),
            BASE64.encode(self.previous),
            self.at,
            self.access.generations,
            BASE64.encode(self.access.digest),
            self.retained_from,
            self.closed_through,
            key.day,
            key.number,
            key.node,
            BASE64.encode(key.public_key),
            BASE64.encode(key.certificate),
        );
        text
    }

    /// Signs the checkpoint with the private half of its key.
    pub(in crate::audit) fn sign(&self, pair: &LogKey) -> String {
        let mut note = self.body();
        let mut signature = key_id(&self.name(), pair.public_key()).to_vec();
        signature.extend(pair.sign(note.as_bytes()));
        let _ = write!(
            note,
            "\n{SIGNATURE_START}{} {}\n",
            self.name(),
            BASE64.encode(signature)
        );
        note
    }

    /// Parses a note; `None` unless a key that an authority certified signed it.
    pub(in crate::audit) fn verify(note: &str, authorities: &[AuthorityKey]) -> Option<Self> {
        let (body, signature) = note.split_once("\n\n")?;
        let body = &note[..=body.len()];
        let checkpoint = Self::parse(body)?;
        let signature = signature.strip_prefix(SIGNATURE_START)?;
        let signature = signature
            .strip_suffix('\n')?
            .strip_prefix(&checkpoint.name())?;
        let signature = BASE64.decode(signature.strip_prefix(' ')?).ok()?;
        let public_key = &checkpoint.key.public_key;
        let signature = signature.strip_prefix(&key_id(&checkpoint.name(), public_key))?;
        let is_genuine = checkpoint.key.is_certified(authorities)
            && verify_log_signature(public_key, body.as_bytes(), signature);
        is_genuine.then_some(checkpoint)
    }

    /// Parses the signed text. Accepts only the form that [`Self::body`] writes.
    fn parse(body: &str) -> Option<Self> {
        let mut lines = body.lines();
        let environment = lines.next()?.strip_prefix(ORIGIN)?.to_owned();
        let number = lines.next()?.parse().ok()?;
        let root = hash(lines.next()?)?;
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let previous = hash(value("previous")?)?;
        let at = value("time")?.parse().ok()?;
        let (generations, digest) = value("access")?.split_once(' ')?;
        let access = AccessSummary {
            generations: generations.parse().ok()?,
            digest: hash(digest)?,
        };
        let retained_from = value("retained-from")?.parse().ok()?;
        let closed_through = value("closed-through")?.parse().ok()?;
        let checkpoint = Self {
            environment,
            number,
            root,
            previous,
            at,
            access,
            retained_from,
            closed_through,
            key: key(value("key")?)?,
        };
        (checkpoint.body() == body).then_some(checkpoint)
    }
}

fn key(line: &str) -> Option<CertifiedKey> {
    let mut words = line.split(' ');
    Some(CertifiedKey {
        day: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        node: words.next()?.parse().ok()?,
        public_key: hash(words.next()?)?,
        certificate: BASE64.decode(words.next()?).ok()?.try_into().ok()?,
    })
}

fn hash(text: &str) -> Option<Hash> {
    BASE64.decode(text).ok()?.try_into().ok()
}

fn key_id(name: &str, key: &LogPublicKey) -> [u8; 4] {
    let mut message = name.as_bytes().to_vec();
    message.extend([b'\n', ED25519]);
    message.extend(key);
    let hash = sha256(&message);
    [hash[0], hash[1], hash[2], hash[3]]
}

/// The hash by which the next checkpoint refers to this note.
pub(in crate::audit) fn note_hash(note: &str) -> Hash {
    sha256(note.as_bytes())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::audit::link::certificate_message;

    fn signed(pair: &LogKey, authority: &LogKey) -> (Checkpoint, String) {
        let node = Uuid::from_bytes([1; 16]);
        let message = certificate_message(20_000, 3, node, pair.public_key());
        let checkpoint = Checkpoint {
            environment: "test".to_owned(),
            number: 7,
            root: [1; 32],
            previous: [2; 32],
            at: "2030-02-05T10:11:12.345678Z".parse().unwrap(),
            access: AccessSummary {
                generations: 9,
                digest: [3; 32],
            },
            retained_from: 19_900,
            closed_through: 19_999,
            key: CertifiedKey {
                day: 20_000,
                number: 3,
                node,
                public_key: *pair.public_key(),
                certificate: authority.sign(&message),
            },
        };
        let note = checkpoint.sign(pair);
        (checkpoint, note)
    }

    #[test]
    fn a_note_verifies_with_the_public_key_of_the_authority_alone() {
        let (pair, authority) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let (checkpoint, note) = signed(&pair, &authority);
        let other = LogKey::generate().unwrap();

        let verified = Checkpoint::verify(&note, &[(*authority.public_key()).into()]);

        assert_eq!(verified, Some(checkpoint));
        assert!(note.starts_with("cloakroom.audit/test\n7\n"), "{note}");
        assert_eq!(
            Checkpoint::verify(&note, &[(*other.public_key()).into()]),
            None
        );
        assert_eq!(Checkpoint::verify(&note, &[]), None);
    }

    #[test]
    fn a_note_that_differs_in_any_byte_is_rejected() {
        let (pair, authority) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let (_, note) = signed(&pair, &authority);
        let authorities = [(*authority.public_key()).into()];
        for position in 0..note.len() {
            for replacement in ["x", "0", " ", "\n", ""] {
                if !note.is_char_boundary(position) || !note.is_char_boundary(position + 1) {
                    continue;
                }
                let changed = [&note[..position], replacement, &note[position + 1..]].concat();
                if changed != note {
                    let verified = Checkpoint::verify(&changed, &authorities);
                    assert_eq!(verified, None, "{changed}");
                }
            }
        }
        assert_eq!(Checkpoint::verify(&format!("{note}x"), &authorities), None);
    }
}
