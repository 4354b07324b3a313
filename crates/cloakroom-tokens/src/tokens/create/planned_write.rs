//! What a create will do for one token: insert it, merge it into an existing token, or return an existing token.

use cloakroom_core::access::{Container, DeduplicationBehavior};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::OtherFingerprint;
use cloakroom_crypto::Fingerprint;
use uuid::Uuid;

use super::plan::conversion_entry;
use crate::attributes::Digests;
use crate::tokens::store::Write;
use crate::tokens::view::VisibleData;
use crate::tokens::{Token, TokenView};

/// The planned write or read for one token.
pub(in crate::tokens) enum PlannedWrite {
    /// A token is inserted or updated; `take_writes` takes `write` out.
    Write {
        write: Option<Box<Write>>,
        token: Box<Token>,
        shown: Option<Box<VisibleData>>,
        deduplication: Option<DeduplicationBehavior>,
        claim: Option<Claim>,
    },
    /// An existing token is returned unchanged; `write` only deletes the converted intent.
    ReadExisting {
        view: Box<TokenView>,
        write: Option<Box<Write>>,
        claim: Option<Claim>,
    },
    /// A duplicate of an earlier token of the same request.
    Duplicate { index: usize },
}

/// Fingerprint and container of a token with deduplication.
#[derive(PartialEq, Eq)]
pub(in crate::tokens) struct Claim {
    pub fingerprint: Fingerprint,
    /// The fingerprints of the same value under other versions of the key, while it is replaced.
    pub other_fingerprints: Vec<OtherFingerprint>,
    pub container: Container,
}

impl Claim {
    /// The claim of a token with these digests; `None` without a fingerprint.
    pub(in crate::tokens) fn of(digests: &Digests, container: &Container) -> Option<Self> {
        Some(Self {
            fingerprint: digests.fingerprint?,
            other_fingerprints: digests.other_fingerprints.clone(),
            container: container.clone(),
        })
    }
}

/// Takes the writes out of the plans, with the index of the plan of each.
pub(in crate::tokens) fn take_writes(plans: &mut [PlannedWrite]) -> (Vec<usize>, Vec<Write>) {
    let plans = plans.iter_mut().enumerate();
    plans
        .filter_map(|(position, plan)| match plan {
            PlannedWrite::Write { write, .. } | PlannedWrite::ReadExisting { write, .. } => {
                Some((position, *write.take()?))
            }
            PlannedWrite::Duplicate { .. } => None,
        })
        .unzip()
}

impl PlannedWrite {
    /// The token to write, if any.
    pub(in crate::tokens) fn token(&self) -> Option<&Token> {
        match self {
            Self::Write { token, .. } => Some(token),
            Self::ReadExisting { .. } | Self::Duplicate { .. } => None,
        }
    }

    /// A copy with what the response needs, without the write.
    pub(in crate::tokens) fn without_write(&self) -> Self {
        match self {
            Self::Write {
                token,
                shown,
                deduplication,
                ..
            } => Self::Write {
                write: None,
                token: token.clone(),
                shown: shown.clone(),
                deduplication: *deduplication,
                claim: None,
            },
            Self::ReadExisting { view, .. } => Self::ReadExisting {
                view: view.clone(),
                write: None,
                claim: None,
            },
            Self::Duplicate { index } => Self::Duplicate { index: *index },
        }
    }

    /// Adds the intent of a duplicate token to this write; false if this plan writes no token.
    pub(in crate::tokens) fn add_intent(&mut self, intent: Option<Uuid>, caller: &Caller) -> bool {
        match (self, intent) {
            (_, None) => true,
            (
                Self::Write {
                    write: Some(write),
                    token,
                    ..
                },
                Some(intent),
            ) => {
                let entry = conversion_entry(caller, intent, &token.id, token.kind);
                write.add_intent(intent, entry);
                true
            }
            (Self::Write { .. } | Self::ReadExisting { .. } | Self::Duplicate { .. }, Some(_)) => {
                false
            }
        }
    }

    pub(in crate::tokens) fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Write { claim, .. } | Self::ReadExisting { claim, .. } => claim.as_ref(),
            Self::Duplicate { .. } => None,
        }
    }
}
