//! Settings of the root key, which wraps all other keys.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::finding::Finding;
use super::section::section;
use super::setting::choice;
use super::vault::Environment;
use super::{Error, files};

/// The longest time that a node serves without its key provider. The audit keys of the following day are certified this
/// long before midnight.
pub const GRACE_MAX: Duration = Duration::from_secs(12 * 60 * 60);

section! {
    /// The root key, and the cache of unwrapped keys. Credentials are read from files or come from the platform.
    pub struct RootKey in "root_key" {
        /// Key provider that stores the root key.
        pub provider: Provider = Provider::File,
        /// File that contains the root key, for the provider `file`.
        pub file: Option<PathBuf> = None,
        /// Allows the provider `file` in production.
        pub allow_file_in_production: bool = false,
        /// Unix socket on which a sealed node receives shares, for the provider `shares`. Only the node's user can
        /// connect.
        pub shares_socket: Option<PathBuf> = None,
        /// PKCS#11 module (shared library) of the HSM, for the provider `pkcs11`.
        pub pkcs11_module: Option<PathBuf> = None,
        /// Label of the PKCS#11 token.
        pub pkcs11_token: Option<String> = None,
        /// Label of the AES-256 key in the PKCS#11 token.
        pub pkcs11_key: Option<String> = None,
        /// File with the PIN of the PKCS#11 token; its mode must be 0400, or 0440 if it belongs to root.
        pub pkcs11_pin_file: Option<PathBuf> = None,
        /// ARN of the symmetric key, for the provider `aws_kms`. Aliases are rejected, because they can be moved.
        pub aws_kms_key: Option<String> = None,
        /// URL of the KMS endpoint, such as a VPC endpoint. By default the public endpoint of the key's region.
        pub aws_kms_endpoint: Option<String> = None,
        /// Shared credentials file, whose profile `default` is used. By default the identity of the platform: web
        /// identity, container, or instance role.
        pub aws_kms_credentials_file: Option<PathBuf> = None,
        /// URL of the Vault or OpenBao server, for the provider `transit`.
        pub transit_url: Option<String> = None,
        /// Mount path of the Transit engine.
        pub transit_mount: String = "transit".to_owned(),
        /// Name of the Transit key; its type must be `aes256-gcm96`.
        pub transit_key: Option<String> = None,
        /// File with the token of the node. It is read again when it changes, so that an agent can renew it.
        pub transit_token_file: Option<PathBuf> = None,
        /// PEM file with the CA certificates of the server. By default those of the operating system.
        pub transit_ca_file: Option<PathBuf> = None,
        /// Namespace, for Vault Enterprise and OpenBao.
        pub transit_namespace: Option<String> = None,
        /// Configuration file whose section `root_key` describes the former root key, while the root key is rotated. Keys
        /// that it wrapped can still be unwrapped.
        pub previous: Option<PathBuf> = None,
        /// Time limit of a request to the provider while the node serves. Requests at startup and requests that
        /// create keys have ten seconds.
        pub deadline: Duration = Duration::from_millis(300),
        /// How long an unwrapped key is cached. It is refreshed in the background before.
        pub cache_ttl: Duration = Duration::from_secs(5 * 60),
        /// Maximum number of cached unwrapped keys.
        pub cache_size: usize = 10_000,
        /// How long after it was last unwrapped a key remains usable while the provider is unavailable. At least
        /// `cache_ttl`, and at most 12 hours.
        pub grace: Duration = Duration::from_secs(60 * 60),
    }
}

choice! {
    /// Key provider that stores the root key.
    pub enum Provider {
        File = "file",
        Shares = "shares",
        Pkcs11 = "pkcs11",
        AwsKms = "aws_kms",
        Transit = "transit",
    }
}

impl RootKey {
    /// Resolves the library that this process loads.
    pub(super) fn resolve(&mut self, findings: &mut Vec<Finding>) {
        let module = self.pkcs11_module.as_deref().filter(|path| path.exists());
        match module.map(files::trusted).transpose() {
            Ok(None) => {}
            Ok(trusted) => self.pkcs11_module = trusted,
            Err(error) => {
                findings.push(Finding::error("root_key.pkcs11_module", error.to_string()));
            }
        }
    }

    /// Reads the settings of the former root key, if it is configured. Environment variables do not override them.
    pub fn load_previous(&self) -> Result<Option<Self>, Error> {
        let Some(path) = &self.previous else {
            return Ok(None);
        };
        super::load_file(path).map(|config| Some(config.root_key))
    }

    /// Returns the path of the root key file, or an error that names the missing setting.
    pub fn require_file(&self) -> Result<&Path, Error> {
        self.file
            .as_deref()
            .ok_or_else(|| Error::missing("root_key.file"))
    }

    /// Whether every setting that the provider needs is set.
    pub fn is_complete(&self) -> bool {
        self.missing().is_none()
    }

    /// The first setting that the provider needs and that is not set.
    fn missing(&self) -> Option<&'static str> {
        let needed: &[(bool, &'static str)] = match self.provider {
            Provider::File => &[(self.file.is_some(), "root_key.file")],
            Provider::Shares => &[(self.shares_socket.is_some(), "root_key.shares_socket")],
            Provider::Pkcs11 => &[
                (self.pkcs11_module.is_some(), "root_key.pkcs11_module"),
                (self.pkcs11_token.is_some(), "root_key.pkcs11_token"),
                (self.pkcs11_key.is_some(), "root_key.pkcs11_key"),
                (self.pkcs11_pin_file.is_some(), "root_key.pkcs11_pin_file"),
            ],
            Provider::AwsKms => &[(self.aws_kms_key.is_some(), "root_key.aws_kms_key")],
            Provider::Transit => &[
                (self.transit_url.is_some(), "root_key.transit_url"),
                (self.transit_key.is_some(), "root_key.transit_key"),
                (
                    self.transit_token_file.is_some(),
                    "root_key.transit_token_file",
                ),
            ],
        };
        let missing = needed.iter().find(|(is_set, _)| !is_set);
        missing.map(|(_, setting)| *setting)
    }

    pub(super) fn check(&self, environment: Environment, findings: &mut Vec<Finding>) {
        if let Some(setting) = self.missing() {
            findings.push(Finding::warning(
                setting,
                "is not set; the service needs it",
            ));
        }
        if self.provider == Provider::File && environment == Environment::Production {
            findings.push(self.check_file_in_production());
        }
        let key = self.aws_kms_key.as_deref();
        if key.is_some_and(|key| !is_kms_key_arn(key)) {
            let message =
                "must be the ARN of a key, such as arn:aws:kms:eu-central-1:123456789012:key/ID";
            findings.push(Finding::error("root_key.aws_kms_key", message));
        }
        for (setting, url) in [
            ("root_key.transit_url", &self.transit_url),
            ("root_key.aws_kms_endpoint", &self.aws_kms_endpoint),
        ] {
            let url = url.as_deref().unwrap_or("https://");
            findings.extend(check_url(setting, url, environment));
        }
        if self.grace < self.cache_ttl {
            let message = "must not be shorter than root_key.cache_ttl";
            findings.push(Finding::error("root_key.grace", message));
        }
        if GRACE_MAX < self.grace {
            let message = "must not be longer than 12 hours";
            findings.push(Finding::error("root_key.grace", message));
        }
    }

    fn check_file_in_production(&self) -> Finding {
        match self.allow_file_in_production {
            false => {
                let message = "a root key in a file is rejected in production, \
                               unless root_key.allow_file_in_production is true";
                Finding::error("root_key.provider", message)
            }
            true => {
                let message = "the root key of a production vault is stored in a file: \
                               anyone who has the file and the database can decrypt everything";
                Finding::warning("root_key.allow_file_in_production", message)
            }
        }
    }
}

/// Whether the text is the ARN of a key, not of an alias.
fn is_kms_key_arn(text: &str) -> bool {
    let fields: Vec<&str> = text.splitn(6, ':').collect();
    matches!(fields[..], ["arn", _, "kms", region, _, resource]
        if !region.is_empty() && resource.starts_with("key/"))
}

/// Keys travel in plaintext inside these connections: without TLS, the network reads them.
fn check_url(setting: &'static str, url: &str, environment: Environment) -> Option<Finding> {
    let message = "is not encrypted: anyone on the network can read every key; use https://";
    match (url.split_once("://"), environment) {
        (Some(("https", _)), _) => None,
        (Some(("http", _)), Environment::Test) => Some(Finding::warning(setting, message)),
        (Some(("http", _)), Environment::Production) => Some(Finding::error(setting, message)),
        _ => Some(Finding::error(
            setting,
            "must be a URL that begins with https://",
        )),
    }
}
