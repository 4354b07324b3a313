//! Settings of the record of what was done.

use super::finding::Finding;
use super::section::section;

/// The tables have room for a hundred days, of which some are in use or about to be.
const KEEP_DAYS_MAX: usize = 92;

section! {
    /// The record of who did what, which `GET /logs` shows and `cloakroom audit verify` examines.
    pub struct Audit in "audit" {
        /// Whole days for which records stay in the database, up to 92. Tenants see them for as long
        /// as their quota says; days that a quota still shows are never removed.
        pub keep_days: usize = 90,
        /// Whether reads are recorded. Only measurements turn it off, and only where all tenants are
        /// test tenants.
        pub record_reads: bool = true,
    }
}

impl Audit {
    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        if KEEP_DAYS_MAX < self.keep_days {
            findings.push(Finding::error("audit.keep_days", "must be at most 92"));
        }
        if is_production && !self.record_reads {
            let message = "must be true in the environment `production`";
            findings.push(Finding::error("audit.record_reads", message));
        }
    }
}
