//! Token writes and their results.

use cloakroom_core::access::Container;
use cloakroom_core::audit::Entry;
use cloakroom_core::keys::OtherFingerprint;
use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use uuid::Uuid;

use crate::attributes::{Term, TokenId};
use crate::security_codes::SealedCode;
use crate::tokens::attributes::TokenAttributes;
use crate::types::TokenKind;

/// The values of an inserted or updated token, with its data encrypted.
pub(crate) struct SealedToken {
    pub id: TokenId,
    /// Whether the id is not a generated UUID, so that it may already be in use.
    pub has_chosen_id: bool,
    pub kind: TokenKind,
    pub container: Container,
    pub container_number: i32,
    pub attributes: TokenAttributes,
    pub sealed: Vec<u8>,
    pub fingerprint: Option<Fingerprint>,
    /// The fingerprints under other versions of the key, while it is replaced.
    pub other_fingerprints: Vec<OtherFingerprint>,
    pub terms: Vec<Term>,
    /// The age of the keys that fingerprint and terms were computed with.
    pub digest_epoch: i32,
    /// The application that creates or updates the token.
    pub by: Uuid,
    /// When the token is created or updated, by the estimated clock of the database: the data is bound to it.
    pub at: Timestamp,
    pub code: CodeChange,
    /// When the stored security code expires, also if the write does not change it.
    pub security_code_until: Option<Timestamp>,
    /// Whether the token claims its fingerprint, so that it is unique in the container.
    pub claims: bool,
    /// Converted intents, deleted by the same statement.
    pub intents: Vec<Uuid>,
    /// Audit log entries of the write.
    pub entries: Vec<Entry>,
}

/// The change of the security code.
pub(crate) enum CodeChange {
    Keep,
    Remove,
    Set(SealedCode),
}

impl CodeChange {
    /// When the security code expires, given when the one before the change does.
    pub(crate) fn until(&self, before: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(code) => Some(code.until),
        }
    }
}

/// The state of an updated token before the update.
pub(crate) struct PreviousState {
    pub row_version: u32,
    pub container: Container,
    pub container_number: i32,
    pub fingerprint: Option<Fingerprint>,
    pub terms: Vec<Term>,
}

/// A single write.
pub(crate) enum Write {
    Insert(SealedToken),
    Update(PreviousState, SealedToken),
    /// Deletes an intent whose data is already stored in a token, with its audit log entry.
    Consume(Uuid, Entry),
}

impl Write {
    pub(crate) fn entries(&self) -> &[Entry] {
        match self {
            Self::Insert(token) | Self::Update(_, token) => &token.entries,
            Self::Consume(_, entry) => std::slice::from_ref(entry),
        }
    }

    /// The key of the written token, and when it is written.
    pub(crate) fn written_row(&self) -> Option<(Uuid, Timestamp)> {
        match self {
            Self::Insert(token) | Self::Update(_, token) => Some((*token.id.key(), token.at)),
            Self::Consume(..) => None,
        }
    }

    /// The token to write, and the state before an update.
    pub(crate) fn token(&self) -> Option<(&SealedToken, Option<&PreviousState>)> {
        match self {
            Self::Insert(token) => Some((token, None)),
            Self::Update(before, token) => Some((token, Some(before))),
            Self::Consume(..) => None,
        }
    }

    /// The unique keys of the write: the claim, if any, and the id.
    pub(crate) fn unique_keys(&self) -> UniqueKeys {
        match self {
            Self::Insert(token) | Self::Update(_, token) => token.unique_keys(),
            Self::Consume(intent, _) => UniqueKeys {
                claim: None,
                id: *intent,
            },
        }
    }

    /// Adds another intent to convert.
    pub(crate) fn add_intent(&mut self, intent: Uuid, mut converted: Entry) {
        if let Self::Insert(token) | Self::Update(_, token) = self {
            converted.set_time(token.at);
            token.intents.push(intent);
            token.entries.push(converted);
        }
    }
}

impl SealedToken {
    /// The unique keys of the write: the claim, if any, and the id.
    pub(super) fn unique_keys(&self) -> UniqueKeys {
        let claimed = self.fingerprint.filter(|_| self.claims);
        UniqueKeys {
            claim: claimed.map(|fingerprint| ClaimKey {
                fingerprint: *fingerprint.as_bytes(),
                container_number: self.container_number,
            }),
            id: *self.id.key(),
        }
    }

    /// All fingerprints of its value.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> {
        let others = self.other_fingerprints.iter().map(|it| it.fingerprint);
        self.fingerprint.into_iter().chain(others)
    }

    /// The fingerprints that it claims besides the active one.
    pub(crate) fn other_claims(&self) -> impl Iterator<Item = &Fingerprint> {
        let others = self.other_fingerprints.iter();
        let claimed = others.filter(|it| self.claims && it.is_claimed);
        claimed.map(|it| &it.fingerprint)
    }

    /// The fingerprint before an update that is the same value's under another version of the key.
    pub(crate) fn replaced_fingerprint(&self, before: &PreviousState) -> Option<&OtherFingerprint> {
        let is_before = |it: &&OtherFingerprint| before.fingerprint == Some(it.fingerprint);
        let is_moved = before.container_number != self.container_number;
        self.other_fingerprints
            .iter()
            .find(is_before)
            .filter(|_| !is_moved)
    }
}

/// The unique keys of a write, in the order in which rows are locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UniqueKeys {
    pub claim: Option<ClaimKey>,
    pub id: Uuid,
}

/// The key of a claim within a tenant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    pub fingerprint: [u8; 32],
    pub container_number: i32,
}

/// Parameters that accompany a write.
#[derive(Clone, Copy)]
pub(crate) struct WriteContext {
    /// Whether client-chosen ids are reserved, so that ids of deleted tokens cannot be reused.
    pub reserves_ids: bool,
}

/// The result of a write, which is atomic.
pub(crate) enum WriteResult {
    Written,
    /// The write at this index was rejected: its expiry has passed, or the row version has changed.
    Rejected(usize),
    /// A concurrent request took the id or the claim.
    Conflict,
}

impl WriteResult {
    /// The result of a single write.
    pub(crate) fn of_one(is_written: bool) -> Self {
        match is_written {
            true => Self::Written,
            false => Self::Rejected(0),
        }
    }
}
