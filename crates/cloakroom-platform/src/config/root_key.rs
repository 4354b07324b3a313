//! Settings of the root key, which wraps all other keys.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::finding::Finding;
use super::section::section;
use super::setting::choice;
use super::vault::Environment;

section! {
    /// The root key, and the cache of unwrapped keys.
    pub struct RootKey in "root_key" {
        /// Key provider that stores the root key.
        pub provider: Provider = Provider::File,
        /// File that contains the root key, for the provider `file`.
        pub file: Option<PathBuf> = None,
        /// Allows the provider `file` in production.
        pub allow_file_in_production: bool = false,
        /// How long an unwrapped key is cached.
        pub cache_ttl: Duration = Duration::from_secs(5 * 60),
        /// Maximum number of cached unwrapped keys.
        pub cache_size: usize = 10_000,
        /// How long after it was unwrapped a key remains usable while the provider is unavailable. At least
        /// `cache_ttl`.
        pub grace: Duration = Duration::from_secs(60 * 60),
    }
}

choice! {
    /// Key provider that stores the root key.
    pub enum Provider {
        File = "file",
    }
}

impl RootKey {
    /// Returns the path of the root key file, or an error that names the missing setting.
    pub fn require_file(&self) -> Result<&Path, Error> {
        self.file
            .as_deref()
            .ok_or_else(|| Error::missing("root_key.file"))
    }

    pub(super) fn check(&self, environment: Environment, findings: &mut Vec<Finding>) {
        let Provider::File = self.provider;
        if self.file.is_none() {
            findings.push(Finding::warning(
                "root_key.file",
                "is not set; the service needs it",
            ));
        }
        match (environment, self.allow_file_in_production) {
            (Environment::Test, _) => {}
            (Environment::Production, false) => {
                let message = "a root key in a file is rejected in production, \
                               unless root_key.allow_file_in_production is true";
                findings.push(Finding::error("root_key.provider", message));
            }
            (Environment::Production, true) => {
                let message = "the root key of a production vault is stored in a file: \
                               anyone who has the file and the database can decrypt everything";
                findings.push(Finding::warning(
                    "root_key.allow_file_in_production",
                    message,
                ));
            }
        }
        if self.grace < self.cache_ttl {
            let message = "must not be shorter than root_key.cache_ttl";
            findings.push(Finding::error("root_key.grace", message));
        }
    }
}
