//! A number that a caller sends and that an equality check would confirm.

use cloakroom_crypto::Sensitive;

/// Trailing digits of a number that the vault shows.
pub(super) const LAST_DIGITS: usize = 4;

#[derive(Debug)]
pub enum CandidateNumber {
    /// Known by its first six or eight and its last four digits.
    Card(Sensitive<String>),
    /// A number with few possible values, known by its type and its last four digits.
    Identifier {
        kind: &'static str,
        digits: Sensitive<String>,
    },
}

impl PartialEq for CandidateNumber {
    fn eq(&self, other: &Self) -> bool {
        let kind = |number: &Self| match number {
            Self::Card(_) => None,
            Self::Identifier { kind, .. } => Some(*kind),
        };
        kind(self) == kind(other) && self.digits() == other.digits()
    }
}

impl CandidateNumber {
    pub(super) fn digits(&self) -> &str {
        match self {
            Self::Card(digits) | Self::Identifier { digits, .. } => digits.expose(),
        }
    }

    /// The last digits, unless they are the whole number.
    pub(super) fn last(&self) -> &str {
        let digits = self.digits();
        let start = digits
            .len()
            .checked_sub(LAST_DIGITS)
            .filter(|start| *start > 0);
        start.and_then(|start| digits.get(start..)).unwrap_or("")
    }
}
