//! Settings of the audit log.

use super::finding::Finding;
use super::section::section;

/// The tables have 100 daily partitions, some of which are in use or prepared for the next days.
const KEEP_DAYS_MAX: usize = 92;
/// PCI DSS 10.5.1: three months of the audit log are immediately available.
const KEEP_DAYS_PCI: usize = 90;

section! {
    /// The audit log, which `GET /logs` returns and `cloakroom audit verify` verifies.
    pub struct Audit in "audit" {
        /// Retention of audit entries in the database in whole days, at most 92. Tenants can read entries within their
        /// quota `log_retention`; days within the longest such quota are never deleted.
        pub keep_days: usize = 90,
        /// Whether reads are written to the audit log. Disable only for benchmarks, in a vault that has only test
        /// tenants.
        pub record_reads: bool = true,
    }
}

impl Audit {
    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        if KEEP_DAYS_MAX < self.keep_days {
            findings.push(Finding::error("audit.keep_days", "must be at most 92"));
        }
        if is_production && self.keep_days < KEEP_DAYS_PCI {
            let message = "below 90: PCI DSS 10.5.1 requires three months of the audit log online, and twelve in total";
            findings.push(Finding::warning("audit.keep_days", message));
        }
        if is_production && !self.record_reads {
            let message = "must be true in the environment `production`";
            findings.push(Finding::error("audit.record_reads", message));
        }
    }
}
