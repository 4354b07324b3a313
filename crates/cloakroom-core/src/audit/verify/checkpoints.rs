//! Verifies the chain of checkpoints, and collects what it says about the chains of entries.

use cloakroom_crypto::Hash;

use super::{TrustedCheckpoints, Verifier, checkpoint_line};
use crate::audit::AccessSummary;
use crate::audit::day::{ChainId, day_of};
use crate::audit::finding::Finding;
use crate::audit::note::{Checkpoint, note_hash};
use crate::audit::state::{ChainState, Head};
use crate::audit::store::CheckpointRow;

/// The checkpoint that was verified last.
struct Last {
    number: i64,
    /// `None` if the note was altered, so that nothing is known about what follows it.
    hash: Option<Hash>,
}

/// Position in the chain of checkpoints.
pub(super) struct CheckpointWalk {
    last: Option<Last>,
    /// Whether the first checkpoint may have any number, because earlier ones are not part of the verification.
    starts_anywhere: bool,
    trusted: Option<TrustedCheckpoints>,
    /// The access states of the last checkpoint.
    access: Option<AccessSummary>,
    /// Heads and keys of the last checkpoint, without closed days; `None` if unknown.
    state: Option<ChainState>,
    pub(super) retained_from: i32,
    pub(super) closed_through: i32,
    /// The last day that has a checkpoint without its state.
    stateless: Option<(i32, i64)>,
}

impl CheckpointWalk {
    pub(super) fn new(starts_anywhere: bool, trusted: Option<TrustedCheckpoints>) -> Self {
        Self {
            last: None,
            starts_anywhere,
            trusted,
            access: None,
            state: (!starts_anywhere).then(ChainState::default),
            retained_from: i32::MIN,
            closed_through: i32::MIN,
            stateless: None,
        }
    }
}

impl Verifier {
    pub(super) fn check_checkpoint(&mut self, row: CheckpointRow) {
        self.report.checkpoints += 1;
        let number = row.number;
        self.check_number(number);
        self.compare_with_sink(&row);
        let checkpoint = Checkpoint::verify(&row.note, &self.authorities);
        let Some(checkpoint) = checkpoint.filter(|it| it.number == number) else {
            self.checkpoints.last = Some(Last { number, hash: None });
            self.checkpoints.state = None;
            return self.report.report(Finding::AlteredCheckpoint { number });
        };
        let before = match &self.checkpoints.last {
            Some(last) => last.hash,
            None if self.checkpoints.starts_anywhere => None,
            None => Some([0; 32]),
        };
        if before.is_some_and(|before| before != checkpoint.previous) {
            self.report.report(Finding::ForkedCheckpoint { number });
        }
        self.checkpoints.last = Some(Last {
            number,
            hash: Some(note_hash(&row.note)),
        });
        self.report.newest = Some(checkpoint_line(number, &row.note));
        self.check_access(number - 1, checkpoint.access);
        self.check_state(&checkpoint, row.state.as_deref());
    }

    /// The access states of a later time follow from those of checkpoint `number`, the one before.
    fn check_access(&mut self, number: i64, access: AccessSummary) {
        let earlier = self.checkpoints.access.replace(access);
        if earlier.is_some_and(|earlier| !access.follows(&earlier)) {
            self.report.report(Finding::RolledBackAccess { number });
        }
    }

    /// Compares the access states in the database with those of the newest checkpoint.
    pub(super) fn check_current_access(&mut self, access: AccessSummary) {
        let newest = self.checkpoints.last.as_ref().map_or(0, |it| it.number);
        self.check_access(newest, access);
    }

    /// Checkpoints are numbered from 1 without gaps.
    fn check_number(&mut self, number: i64) {
        let expected = match &self.checkpoints.last {
            Some(last) => last.number + 1,
            None if self.checkpoints.starts_anywhere => number,
            None => 1,
        };
        if expected < number {
            let (from, to) = (expected, number - 1);
            self.report.report(Finding::MissingCheckpoints { from, to });
            self.checkpoints.last = Some(Last {
                number: to,
                hash: None,
            });
            self.checkpoints.state = None;
        }
    }

    fn compare_with_sink(&mut self, row: &CheckpointRow) {
        let Some(trusted) = &mut self.checkpoints.trusted else {
            return;
        };
        while let Some((number, note)) = trusted.next_through(row.number) {
            if number < row.number && self.checkpoints.starts_anywhere {
                continue;
            }
            self.report.compared += 1;
            if number < row.number || note != row.note {
                self.report.report(Finding::DifferentFromSink { number });
            }
        }
    }

    /// Checks the heads and keys that the checkpoint commits to, and what changed since the one before.
    fn check_state(&mut self, checkpoint: &Checkpoint, state: Option<&[u8]>) {
        let number = checkpoint.number;
        let before = self.checkpoints.state.take();
        let previously_closed = self.checkpoints.closed_through;
        self.checkpoints.retained_from = checkpoint.retained_from;
        self.checkpoints.closed_through = checkpoint.closed_through;
        let Some(state) = state else {
            self.checkpoints.stateless = Some((day_of(checkpoint.at), number));
            return;
        };
        let decoded = ChainState::decode(state);
        let Some(mut state) = decoded.filter(|state| state.root() == checkpoint.root) else {
            return self.report.report(Finding::AlteredCheckpoint { number });
        };
        if let Some(before) = &before {
            self.check_unchanged(number, before, &state);
        }
        for (chain, head) in &state.heads {
            let known = before
                .as_ref()
                .map(|before| before.heads.get(chain).copied());
            let may_change = chain.day <= checkpoint.closed_through
                || state.owner(*chain) == Some(checkpoint.key.node);
            if let Some(known) = known
                && !is_growth(known, *head, may_change)
            {
                let chain = *chain;
                self.report.report(Finding::RewrittenHead { number, chain });
            }
            if chain.day <= previously_closed {
                let chain = *chain;
                self.report.report(Finding::RewrittenHead { number, chain });
            }
            if chain.day <= checkpoint.closed_through && !head.is_closed {
                self.report.report(Finding::OpenChain { chain: *chain });
            }
            if known.flatten() != Some(*head) {
                self.state_head(*chain, *head);
            }
        }
        for (id, key) in &state.keys {
            let is_new = before.as_ref().is_none_or(|it| !it.keys.contains_key(id));
            if is_new && self.days.contains(&id.0) && !self.days_done.contains(&id.0) {
                self.stated_keys.insert(*id, *key);
            }
        }
        let closed = checkpoint.closed_through;
        self.walked.retain(|chain, _| chain.day > closed);
        state.drop_days_through(closed);
        self.checkpoints.state = Some(state);
    }

    /// Heads and keys are listed until their day is closed, and keys do not change.
    fn check_unchanged(&mut self, number: i64, before: &ChainState, after: &ChainState) {
        for chain in before.heads.keys() {
            if !after.heads.contains_key(chain) {
                let chain = *chain;
                self.report.report(Finding::RewrittenHead { number, chain });
            }
        }
        for (id @ (day, number), key) in &before.keys {
            if after.keys.get(id) != Some(key) {
                let (day, number) = (*day, *number);
                self.report.report(Finding::UnknownKey { day, number });
            }
        }
    }

    /// Remembers a head until its chain is walked, or compares it with the chain if that is done.
    fn state_head(&mut self, chain: ChainId, head: Head) {
        if !self.days.contains(&chain.day) || head.seq == 0 {
            return;
        }
        match self.walked.get(&chain) {
            Some(walked) if *walked == (head.seq, head.link) => {}
            Some(_) => {
                let seq = head.seq;
                self.report.report(Finding::Forked { chain, seq });
            }
            None if self.days_done.contains(&chain.day) => self.defer_missing(chain),
            None => {
                let stated = self.stated.entry(chain).or_default();
                let last = stated.heads.back().copied();
                if last != Some((head.seq, head.link)) {
                    stated.heads.push_back((head.seq, head.link));
                }
                if head.is_closed {
                    stated.closed_at = Some(head.seq);
                }
            }
        }
    }

    /// Checks what is known only after the last checkpoint.
    pub(super) fn finish_checkpoints(&mut self) {
        // Retention removes the states of the days before those that it retains.
        if let Some((day, number)) = self.checkpoints.stateless
            && self.checkpoints.retained_from <= day
        {
            self.report.report(Finding::AlteredCheckpoint { number });
        }
        let newest = self.checkpoints.last.as_ref().map_or(0, |it| it.number);
        let Some(trusted) = &mut self.checkpoints.trusted else {
            return;
        };
        let shipped = trusted.last_number();
        if let Some(shipped) = shipped.filter(|shipped| newest < *shipped) {
            self.report.report(Finding::RolledBack { newest, shipped });
        }
    }
}

/// Whether a chain may have gotten this head: chains only grow, until they are closed, and by their own node.
fn is_growth(known: Option<Head>, head: Head, may_change: bool) -> bool {
    match known {
        Some(known) if known == head => true,
        Some(known) if known.is_closed || head.seq < known.seq => false,
        Some(known) if known.seq == head.seq && known.link != head.link => false,
        _ => may_change,
    }
}
