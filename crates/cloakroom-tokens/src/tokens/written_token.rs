//! The result of a create or an update.

use cloakroom_core::access::DeduplicationBehavior;

use super::TokenView;
use super::create::planned_write::PlannedWrite;
use super::create::validate::ValidatedToken;

/// The result of a create or an update.
#[derive(Clone)]
pub struct WrittenToken {
    pub view: TokenView,
    /// Set if deduplication returned an existing token.
    pub deduplication: Option<DeduplicationBehavior>,
    /// Whether the client sent the data encrypted.
    pub was_encrypted: bool,
}

/// Builds the results of the plans.
pub(super) fn build_results(
    tokens: &[ValidatedToken],
    plans: Vec<PlannedWrite>,
) -> Vec<WrittenToken> {
    let mut written: Vec<WrittenToken> = Vec::with_capacity(plans.len());
    for plan in plans {
        written.push(match plan {
            PlannedWrite::Write {
                token,
                shown,
                deduplication,
                ..
            } => WrittenToken {
                view: TokenView {
                    token: *token,
                    shown: shown.map(|shown| *shown),
                },
                deduplication,
                was_encrypted: false,
            },
            PlannedWrite::ReadExisting { view, .. } => WrittenToken {
                view: *view,
                deduplication: Some(DeduplicationBehavior::ReadExisting),
                was_encrypted: false,
            },
            PlannedWrite::Duplicate { index } => {
                let mut same = written[index].clone();
                same.deduplication
                    .get_or_insert(DeduplicationBehavior::ReadExisting);
                same
            }
        });
    }
    for (written, new) in written.iter_mut().zip(tokens) {
        written.was_encrypted = new.was_encrypted;
    }
    written
}
