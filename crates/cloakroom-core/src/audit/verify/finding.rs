//! Findings of a verification, one sentence each.

use std::fmt;

use crate::audit::day::{ChainId, date};

/// An inconsistency of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The entries of a range of sequence numbers do not exist.
    Missing { chain: ChainId, from: i32, to: i32 },
    /// The chain ends within a batch: its last entries do not exist.
    Truncated { chain: ChainId, seq: i32 },
    /// At least one entry of the batch is not the one that was signed.
    Altered { chain: ChainId, from: i32, to: i32 },
    /// Two versions of the chain exist from this entry on.
    Forked { chain: ChainId, seq: i32 },
    /// The entry belongs to no chain, or was added to a closed one.
    Stray { chain: ChainId, seq: i32 },
    /// A checkpoint lists the chain, and none of its entries exists.
    MissingChain { chain: ChainId },
    /// Checkpoints list chains of the day, retention did not remove it, and none of its entries exists.
    MissingDay { day: i32 },
    /// The day is closed and the chain is not.
    OpenChain { chain: ChainId },
    /// The audit authority did not certify the key of a node, or it is not the one that checkpoints list.
    UnknownKey { day: i32, number: i32 },
    /// Checkpoints of a range of numbers do not exist.
    MissingCheckpoints { from: i64, to: i64 },
    /// The checkpoint is not the one that was signed.
    AlteredCheckpoint { number: i64 },
    /// The checkpoint does not follow from the one before it.
    ForkedCheckpoint { number: i64 },
    /// The checkpoint states another head for a chain than its node did.
    RewrittenHead { number: i64, chain: ChainId },
    /// A sink received another checkpoint with this number.
    DifferentFromSink { number: i64 },
    /// The access states are older than, or not those of, the checkpoint before them.
    RolledBackAccess { number: i64 },
    /// Sinks received later checkpoints: the log was rolled back to an earlier state.
    RolledBack { newest: i64, shipped: i64 },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |chain: &ChainId| format!("{}, chain {}", date(chain.day), chain.number);
        match self {
            Self::Missing { chain, from, to } if from == to => {
                write!(f, "{}: entry {from} is missing", at(chain))
            }
            Self::Missing { chain, from, to } => {
                write!(f, "{}: entries {from} to {to} are missing", at(chain))
            }
            Self::Truncated { chain, seq } => {
                write!(f, "{}: entries after {seq} are missing", at(chain))
            }
            Self::Altered { chain, from, to } if from == to => {
                write!(f, "{}: entry {from} was modified", at(chain))
            }
            Self::Altered { chain, from, to } => write!(
                f,
                "{}: at least one of the entries {from} to {to} was modified",
                at(chain)
            ),
            Self::Forked { chain, seq } => {
                write!(
                    f,
                    "{}: two versions of the chain exist at entry {seq}",
                    at(chain)
                )
            }
            Self::Stray { chain, seq } => {
                write!(f, "{}: entry {seq} was not written by a node", at(chain))
            }
            Self::MissingChain { chain } => write!(f, "{}: the chain is missing", at(chain)),
            Self::MissingDay { day } => write!(f, "{}: the whole day is missing", date(*day)),
            Self::OpenChain { chain } => {
                write!(
                    f,
                    "{}: the chain is open although its day is closed",
                    at(chain)
                )
            }
            Self::UnknownKey { day, number } => write!(
                f,
                "{}: key {number} is not certified or was replaced",
                date(*day)
            ),
            _ => self.fmt_checkpoint(f),
        }
    }
}

impl Finding {
    fn fmt_checkpoint(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingCheckpoints { from, to } if from == to => {
                write!(f, "checkpoint {from} is missing")
            }
            Self::MissingCheckpoints { from, to } => {
                write!(f, "checkpoints {from} to {to} are missing")
            }
            Self::AlteredCheckpoint { number } => write!(f, "checkpoint {number} was modified"),
            Self::ForkedCheckpoint { number } => {
                write!(
                    f,
                    "checkpoint {number} does not follow from the one before it"
                )
            }
            Self::RewrittenHead { number, chain } => write!(
                f,
                "checkpoint {number} rewrites the head of {}, chain {}",
                date(chain.day),
                chain.number
            ),
            Self::DifferentFromSink { number } => write!(
                f,
                "checkpoint {number} is not the one that the sink received"
            ),
            Self::RolledBackAccess { number } => write!(
                f,
                "rows that grant access were rolled back together with their states after checkpoint {number}"
            ),
            Self::RolledBack { newest, shipped } => write!(
                f,
                "the log was rolled back: its newest checkpoint is {newest}, the sink received {shipped}"
            ),
            _ => Ok(()),
        }
    }
}
