//! PostgreSQL connection settings.

use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::finding::Finding;
use super::plaintext::{self, PlaintextConnection};
use super::section::section;
use super::setting::Secret;

section! {
    /// The PostgreSQL database that stores the vault.
    pub struct Database in "database" {
        /// URL of the database, such as `postgres://cloakroom@db.internal/cloakroom`.
        pub url: Option<Secret> = None,
        /// File that contains the URL, instead of `url`.
        pub url_file: Option<PathBuf> = None,
        /// URL of a standby. It is used only while the primary is unavailable, and only to look up the API keys of
        /// requests for connection formulas. Nothing else is read from it, because a standby can return stale data.
        pub replica_url: Option<Secret> = None,
        /// File that contains the URL, instead of `replica_url`.
        pub replica_url_file: Option<PathBuf> = None,
        /// PEM file with the CA certificate of the database server. If set, connections use TLS and verify the server
        /// certificate and its host name.
        pub ca_file: Option<PathBuf> = None,
        /// Allows connections without TLS to a server on another host in production. Set it only if the network
        /// between them is encrypted. Otherwise such a node does not start.
        pub allow_plaintext: bool = false,
        /// Maximum number of connections in the pool.
        pub max_connections: usize = 16,
        /// Timeout for opening a connection.
        pub connect_timeout: Duration = Duration::from_secs(5),
        /// Timeout of a request that waits for a free connection.
        pub acquire_timeout: Duration = Duration::from_secs(5),
        /// Timeout of a read.
        pub read_deadline: Duration = Duration::from_secs(5),
        /// Timeout of a write. After it, the outcome of the write is unknown.
        pub write_deadline: Duration = Duration::from_secs(10),
    }
}

impl Database {
    /// Returns the URL, or an error that names the missing setting.
    pub fn require_url(&self) -> Result<&Secret, Error> {
        self.url
            .as_ref()
            .ok_or_else(|| Error::missing("database.url"))
    }

    /// Reads the URLs from their files.
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

    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
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
        let mut urls = [Some(url), self.replica_url.as_ref()].into_iter().flatten();
        let is_plain = self.ca_file.is_none();
        if is_production && is_plain && urls.any(|url| !plaintext::is_local_postgres(url.reveal()))
        {
            let connection = PlaintextConnection {
                tls_setting: "database.ca_file",
                waiver: "database.allow_plaintext",
                is_allowed: self.allow_plaintext,
                condition: "the network to the database is encrypted",
            };
            findings.push(connection.finding());
        }
    }

    fn check_url(&self, setting: &'static str, url: &Secret, findings: &mut Vec<Finding>) {
        let url = url.reveal();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            findings.push(Finding::error(setting, "must begin with postgres://"));
        }
        if url.contains("sslmode=require") && self.ca_file.is_none() {
            let message = format!("required, because {setting} has sslmode=require");
            findings.push(Finding::error("database.ca_file", message));
        }
    }
}
