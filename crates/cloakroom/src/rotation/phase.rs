//! The phases of a rotation.

/// How far a rotation is. The numbers are stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The new version exists; nodes load it.
    Added = 1,
    /// The new version seals or digests; nodes learn of it.
    Promoted = 2,
    /// The database rejects values under the old version; statements that started earlier end.
    Closed = 3,
    /// Rows are sealed again, or their digests computed again.
    Rewriting = 4,
    /// A full scan looks for rows under the old version.
    Proving = 5,
    /// No row is left; the old version can be destroyed.
    Proved = 6,
    Destroyed = 7,
}

impl Phase {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        let all = [
            Self::Added,
            Self::Promoted,
            Self::Closed,
            Self::Rewriting,
            Self::Proving,
            Self::Proved,
            Self::Destroyed,
        ];
        all.into_iter().find(|phase| *phase as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Promoted => "promoted",
            Self::Closed => "closed",
            Self::Rewriting => "rewriting",
            Self::Proving => "proving",
            Self::Proved => "proved",
            Self::Destroyed => "destroyed",
        }
    }
}
