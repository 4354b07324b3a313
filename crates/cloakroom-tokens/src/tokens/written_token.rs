//! The result of a create or an update.

use cloakroom_core::access::DeduplicationBehavior;
use jiff::Timestamp;

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

/// Builds the results once the database has returned the timestamps.
pub(super) fn build_results(
    tokens: &[ValidatedToken],
    plans: Vec<PlannedWrite>,
    times: Vec<Timestamp>,
) -> Vec<WrittenToken> {
    let mut times = times.into_iter();
    let mut written: Vec<WrittenToken> = Vec::with_capacity(plans.len());
    for (plan, new) in plans.into_iter().zip(tokens) {
        written.push(match plan {
            PlannedWrite::Write {
                mut token,
                shown,
                deduplication,
                ..
            } => {
                let time = times.next();
                match (token.modified_by, time) {
                    (None, Some(time)) => token.created_at = time,
                    (_, time) => token.modified_at = time,
                }
                WrittenToken {
                    view: TokenView {
                        token: *token,
                        shown: shown.map(|shown| *shown),
                    },
                    deduplication,
                    was_encrypted: false,
                }
            }
            PlannedWrite::ReadExisting { view, .. } => {
                if new.intent.is_some() {
                    times.next();
                }
                WrittenToken {
                    view: *view,
                    deduplication: Some(DeduplicationBehavior::ReadExisting),
                    was_encrypted: false,
                }
            }
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
