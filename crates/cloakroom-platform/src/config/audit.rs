//! Settings of the audit log.

use std::path::PathBuf;
use std::time::Duration;

use super::finding::Finding;
use super::section::section;
use super::setting::Secret;

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
        /// File to which each node appends every checkpoint of the audit log. Put it on another system, or collect it from
        /// there: it detects a database that was rolled back.
        pub sink_file: Option<PathBuf> = None,
        /// `https` URL to which every checkpoint is sent with POST, by one node at a time.
        pub sink_url: Option<Secret> = None,
        /// Host and port of a syslog server (RFC 5425, TLS) that receives every checkpoint, by one node at a time.
        pub sink_syslog: Option<String> = None,
        /// File to which each node with this setting appends all entries of the vault, as lines of JSON, with the keys and
        /// checkpoints that verify them. Its position is in `FILE.position` beside it, so that the file can be rotated.
        pub stream_file: Option<PathBuf> = None,
        /// `https` URL to which all entries are sent with POST, as lines of JSON, by one node at a time.
        pub stream_url: Option<Secret> = None,
        /// Host and port of a syslog server (RFC 5425, TLS) that receives all entries, by one node at a time.
        pub stream_syslog: Option<String> = None,
        /// Certificate authorities of the URLs and syslog servers of `sink_`, `stream_` and `time_stamp_url` in PEM; those of
        /// the system by default.
        pub sink_ca_file: Option<PathBuf> = None,
        /// `http` or `https` URL of a time-stamp authority (RFC 3161). It signs the digest of a checkpoint with its time.
        pub time_stamp_url: Option<Secret> = None,
        /// Directory in which a node stores time-stamped checkpoints: `checkpoints.jsonl`, `N.note` and `N.tsr`.
        pub time_stamp_directory: Option<PathBuf> = None,
        /// Time between two time stamps.
        pub time_stamp_interval: Duration = Duration::from_secs(60 * 60),
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
        if self.keep_days == 0 {
            findings.push(Finding::error("audit.keep_days", "must be at least 1"));
        }
        self.check_sinks(findings);
        self.check_time_stamps(findings);
        let has_sink =
            self.sink_file.is_some() || self.sink_url.is_some() || self.sink_syslog.is_some();
        if is_production && !has_sink {
            let message = "not set, and no other sink is: checkpoints exist only in the database, so a rollback of the whole \
                           database cannot be detected";
            findings.push(Finding::warning("audit.sink_file", message));
        }
        if is_production && !self.record_reads {
            let message = "must be true in the environment `production`";
            findings.push(Finding::error("audit.record_reads", message));
        }
    }
}

impl Audit {
    fn check_sinks(&self, findings: &mut Vec<Finding>) {
        let urls = [
            ("audit.sink_url", &self.sink_url),
            ("audit.stream_url", &self.stream_url),
        ];
        for (setting, url) in urls {
            if let Some(url) = url
                && !url.reveal().starts_with("https://")
            {
                findings.push(Finding::error(setting, "must be an https URL"));
            }
        }
        let servers = [
            ("audit.sink_syslog", &self.sink_syslog),
            ("audit.stream_syslog", &self.stream_syslog),
        ];
        for (setting, address) in servers {
            if let Some(address) = address
                && !is_host_and_port(address)
            {
                let message = "must be a host and a port, such as `logs.example.com:6514`";
                findings.push(Finding::error(setting, message));
            }
        }
        if self.stream_file.is_some() && self.stream_file == self.sink_file {
            let message = "must differ from audit.sink_file";
            findings.push(Finding::error("audit.stream_file", message));
        }
    }

    fn check_time_stamps(&self, findings: &mut Vec<Finding>) {
        if self.time_stamp_url.is_some() != self.time_stamp_directory.is_some() {
            let message = "needs `audit.time_stamp_directory`, and the other way around";
            findings.push(Finding::error("audit.time_stamp_url", message));
        }
        if let Some(url) = &self.time_stamp_url
            && !url.reveal().starts_with("https://")
            && !url.reveal().starts_with("http://")
        {
            let message = "must be an http or https URL";
            findings.push(Finding::error("audit.time_stamp_url", message));
        }
    }
}

fn is_host_and_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}
