//! History of writes: invoked and acknowledged operations, from which the checker derives valid states.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use uuid::Uuid;

/// State of a token as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    /// With the data of this revision.
    Present(u32),
    Deleted,
}

/// A token of a client. Its number is its index in the history and is part of its data.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The part of the run.
    pub(crate) part: u16,
    pub(crate) id: Option<Uuid>,
    /// The last acknowledged state.
    pub(crate) acknowledged: State,
    /// The state after a write whose outcome is indeterminate.
    pub(crate) possible: Option<State>,
}

impl Entry {
    /// Whether the token may have this state.
    pub(crate) fn may_have_state(&self, state: State) -> bool {
        self.acknowledged == state || self.possible == Some(state)
    }

    /// Whether the token must exist.
    pub(crate) fn must_exist(&self) -> bool {
        let is_present = |state| matches!(state, State::Present(_));
        is_present(self.acknowledged) && self.possible.is_none_or(is_present)
    }

    /// Whether the token must have been deleted.
    pub(crate) fn must_not_exist(&self) -> bool {
        self.acknowledged == State::Deleted
    }
}

pub(crate) struct History {
    entries: Mutex<Vec<Entry>>,
    /// The same as text, for inspection after a run.
    file: Mutex<BufWriter<File>>,
}

impl History {
    pub(crate) fn create(file: &Path) -> Result<Self> {
        Ok(Self {
            entries: Mutex::default(),
            file: Mutex::new(BufWriter::new(File::create(file)?)),
        })
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry and returns its number.
    pub(crate) fn open(&self, part: u16) -> usize {
        let mut entries = self.entries();
        entries.push(Entry {
            part,
            id: None,
            acknowledged: State::Absent,
            possible: None,
        });
        entries.len() - 1
    }

    pub(crate) fn entry(&self, number: usize) -> Entry {
        self.entries()[number].clone()
    }

    /// Records that a write was sent which results in `state`.
    pub(crate) fn invoke(&self, number: usize, state: State) {
        self.entries()[number].possible = Some(state);
        self.log(number, "invoked", state);
    }

    /// Records that a write was acknowledged.
    pub(crate) fn acknowledge(&self, number: usize, state: State, id: Option<Uuid>) {
        {
            let entry = &mut self.entries()[number];
            entry.acknowledged = state;
            entry.possible = None;
            entry.id = id.or(entry.id);
        }
        self.log(number, "acknowledged", state);
    }

    fn log(&self, number: usize, what: &str, state: State) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The checker uses the entries in memory; errors of the file do not matter.
        let _written = writeln!(file, "{number} {what} {state:?}");
    }
}

/// The data of a token: its number and revision.
pub(crate) fn data(number: usize, revision: u32) -> String {
    format!("ledger-{number}-{revision}-{:0>64}", number ^ 0x5a5a)
}

/// Parses number and revision from [`data`]; rejects any other text.
pub(crate) fn parse_data(text: &str) -> Option<(usize, u32)> {
    let mut parts = text.strip_prefix("ledger-")?.split('-');
    let number = parts.next()?.parse().ok()?;
    let revision = parts.next()?.parse().ok()?;
    (data(number, revision) == text).then_some((number, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(acknowledged: State, possible: Option<State>) -> Entry {
        Entry {
            part: 0,
            id: None,
            acknowledged,
            possible,
        }
    }

    #[test]
    fn only_complete_data_is_parsed() {
        assert_eq!(parse_data(&data(7, 3)), Some((7, 3)));
        assert_eq!(parse_data(&data(7, 3)[..40]), None);
        assert_eq!(parse_data("ledger-7-3-0"), None);
        assert_eq!(parse_data("XXXX"), None);
    }

    #[test]
    fn an_indeterminate_write_allows_both_states() {
        let changed = entry(State::Present(1), Some(State::Present(2)));
        let deleted = entry(State::Present(1), Some(State::Deleted));

        assert!(
            changed.may_have_state(State::Present(1)) && changed.may_have_state(State::Present(2))
        );
        assert!(!changed.may_have_state(State::Present(0)));
        assert!(changed.must_exist() && !deleted.must_exist());
        assert!(!deleted.must_not_exist());
        assert!(entry(State::Deleted, None).must_not_exist());
        assert!(!entry(State::Absent, Some(State::Present(0))).must_exist());
    }
}
