//! Settings of the root key, which wraps all other keys.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::finding::Finding;
use super::section::section;
use super::setting::choice;
use super::vault::Environment;

section! {
    /// Where the root key comes from, and how long unwrapped keys stay in memory.
    pub struct RootKey in "root_key" {
        /// Who keeps the root key.
        pub provider: Provider = Provider::File,
        /// File with the root key, for the provider `file`.
        pub file: Option<PathBuf> = None,
        /// Accepts the provider `file` in production.
        pub allow_file_in_production: bool = false,
        /// How long an unwrapped key stays in memory.
        pub cache_ttl: Duration = Duration::from_secs(5 * 60),
        /// Unwrapped keys held in memory at a time.
        pub cache_size: usize = 10_000,
        /// How long keys in memory outlive their time while the provider cannot be reached.
        pub grace: Duration = Duration::from_secs(60 * 60),
    }
}

choice! {
    /// Who keeps the root key.
    pub enum Provider {
        File = "file",
    }
}

impl RootKey {
    /// The file with the root key, for commands that cannot do without.
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
                let message = "a root key in a file is refused in production, \
                               unless root_key.allow_file_in_production is true";
                findings.push(Finding::error("root_key.provider", message));
            }
            (Environment::Production, true) => {
                let message = "production keeps its root key in a file: \
                               whoever copies the file and the database reads everything";
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
