//! Settings of the connection to PostgreSQL.

use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::finding::Finding;
use super::section::section;
use super::setting::Secret;

section! {
    /// Where the vault keeps its records.
    pub struct Database in "database" {
        /// URL of the database, such as `postgres://cloakroom@db.internal/cloakroom`.
        pub url: Option<Secret> = None,
        /// File that holds the URL, in place of `url`.
        pub url_file: Option<PathBuf> = None,
        /// URL of a standby, for what may be a moment old: while the primary is away, keys that ask for
        /// connection formulas are looked up there. Nothing else ever is.
        pub replica_url: Option<Secret> = None,
        /// File that holds the URL, in place of `replica_url`.
        pub replica_url_file: Option<PathBuf> = None,
        /// PEM file with the certificate authority of the database server. With it, connections use
        /// TLS and verify the server and its name.
        pub ca_file: Option<PathBuf> = None,
        /// Connections held open at a time.
        pub max_connections: usize = 16,
        /// How long a new connection may take.
        pub connect_timeout: Duration = Duration::from_secs(5),
        /// How long a request may wait for a free connection.
        pub acquire_timeout: Duration = Duration::from_secs(5),
        /// How long a read may take.
        pub read_deadline: Duration = Duration::from_secs(5),
        /// How long a write may take until its outcome is called unknown.
        pub write_deadline: Duration = Duration::from_secs(10),
    }
}

impl Database {
    /// The URL, for commands that cannot do without.
    pub fn require_url(&self) -> Result<&Secret, Error> {
        self.url
            .as_ref()
            .ok_or_else(|| Error::missing("database.url"))
    }

    /// Takes the URLs out of their files.
    pub(super) fn resolve(&mut self, findings: &mut Vec<Finding>) {
        let file = self.url_file.as_deref();
        Secret::resolve("database.url", &mut self.url, file, findings);
        let file = self.replica_url_file.as_deref();
        Secret::resolve(
            "database.replica_url",
            &mut self.replica_url,
            file,
            findings,
        );
    }

    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let Some(url) = &self.url else {
            findings.push(Finding::warning(
                "database.url",
                "is not set; the service needs it",
            ));
            return;
        };
        self.check_url("database.url", url, findings);
        if let Some(url) = &self.replica_url {
            self.check_url("database.replica_url", url, findings);
        }
    }

    fn check_url(&self, setting: &'static str, url: &Secret, findings: &mut Vec<Finding>) {
        let url = url.reveal();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            findings.push(Finding::error(setting, "must begin with postgres://"));
        }
        if url.contains("sslmode=require") && self.ca_file.is_none() {
            let message = format!("needed, because {setting} asks for TLS");
            findings.push(Finding::error("database.ca_file", message));
        }
    }
}
