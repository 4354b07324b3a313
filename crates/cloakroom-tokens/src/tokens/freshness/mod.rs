//! Detects rows of tokens that SQL rolled back or undeleted.
//!
//! A row is authentic for as long as its keys exist, so an older copy of it decrypts. A node rejects rows that are older
//! than a write that it knows (`latest_writes.rs`); the audit log shows the others (`history.rs`).

mod history;
mod latest_writes;

pub use self::history::{Difference, HistoryFinding, HistoryReport, Scope, verify_histories};
pub(super) use self::latest_writes::{LatestWrites, report_stale};
