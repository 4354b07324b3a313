//! What clients sent, and what they were told: the only truth that the vault is compared with.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use uuid::Uuid;

/// What a token is, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    /// With the data of this revision.
    Present(u32),
    Deleted,
}

/// One token of one client. Its number is its place in the ledger, and is part of its data.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Which part of the run it belongs to.
    pub(crate) part: u16,
    pub(crate) id: Option<Uuid>,
    /// The last that was acknowledged.
    pub(crate) acknowledged: State,
    /// What a request that got no clear answer may have made of it.
    pub(crate) possible: Option<State>,
}

impl Entry {
    /// Whether the token may be so.
    pub(crate) fn may_be(&self, state: State) -> bool {
        self.acknowledged == state || self.possible == Some(state)
    }

    /// Whether there must be a token.
    pub(crate) fn must_exist(&self) -> bool {
        let is_present = |state| matches!(state, State::Present(_));
        is_present(self.acknowledged) && self.possible.is_none_or(is_present)
    }

    /// Whether there must be none any more.
    pub(crate) fn must_be_gone(&self) -> bool {
        self.acknowledged == State::Deleted
    }
}

pub(crate) struct Ledger {
    entries: Mutex<Vec<Entry>>,
    /// The same as lines of text, to be looked at afterwards.
    file: Mutex<BufWriter<File>>,
}

impl Ledger {
    pub(crate) fn create(file: &Path) -> Result<Self> {
        Ok(Self {
            entries: Mutex::default(),
            file: Mutex::new(BufWriter::new(File::create(file)?)),
        })
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new number.
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

    /// Something is being tried that would make `state` of it.
    pub(crate) fn try_for(&self, number: usize, state: State) {
        self.entries()[number].possible = Some(state);
        self.note(number, "tries", state);
    }

    /// It was acknowledged.
    pub(crate) fn acknowledge(&self, number: usize, state: State, id: Option<Uuid>) {
        {
            let entry = &mut self.entries()[number];
            entry.acknowledged = state;
            entry.possible = None;
            entry.id = id.or(entry.id);
        }
        self.note(number, "acknowledged", state);
    }

    fn note(&self, number: usize, what: &str, state: State) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The file is for people; the run is judged by what is in memory.
        let _written = writeln!(file, "{number} {what} {state:?}");
    }
}

/// The data of a token: who it is, and which revision.
pub(crate) fn data(number: usize, revision: u32) -> String {
    format!("ledger-{number}-{revision}-{:0>64}", number ^ 0x5a5a)
}

/// Number and revision of [`data`], if it is exactly that.
pub(crate) fn read_data(text: &str) -> Option<(usize, u32)> {
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
    fn data_tells_whose_it_is_only_when_it_is_whole() {
        assert_eq!(read_data(&data(7, 3)), Some((7, 3)));
        assert_eq!(read_data(&data(7, 3)[..40]), None);
        assert_eq!(read_data("ledger-7-3-0"), None);
        assert_eq!(read_data("XXXX"), None);
    }

    #[test]
    fn what_is_unknown_may_be_either() {
        let changed = entry(State::Present(1), Some(State::Present(2)));
        let deleted = entry(State::Present(1), Some(State::Deleted));

        assert!(changed.may_be(State::Present(1)) && changed.may_be(State::Present(2)));
        assert!(!changed.may_be(State::Present(0)));
        assert!(changed.must_exist() && !deleted.must_exist());
        assert!(!deleted.must_be_gone());
        assert!(entry(State::Deleted, None).must_be_gone());
        assert!(!entry(State::Absent, Some(State::Present(0))).must_exist());
    }
}
