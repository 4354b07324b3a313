//! 3-D Secure settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cloakroom_emv3ds::Version;

use super::BaseUrl;
use super::finding::Finding;
use super::section::section;
use super::setting::Setting;

const HOUR: Duration = Duration::from_secs(60 * 60);
const SESSION_RETENTION_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const REFUSAL_LIMIT_MAX: usize = 1_000;

section! {
    /// 3-D Secure: connections to directory servers or a vendor, and the endpoint for results. docs/operate/threeds.md
    /// explains both. Tenants also need the quota `threeds`.
    pub struct Threeds in "threeds" {
        /// TOML file with the directory servers or the vendor. If unset, 3-D Secure is disabled and sessions are
        /// rejected.
        pub networks_file: Option<PathBuf> = None,
        /// 3DS Server reference number, from the EMVCo letter of approval.
        pub reference_number: String = "3DS_LOA_SER_NONE_020200_00000".to_owned(),
        /// Name of this 3DS Server. The 3DS Requestor names of Mastercard merchants start with it.
        pub server_name: String = "cloakroom".to_owned(),
        /// Supported protocol versions, of `2.1.0`, `2.2.0` and `2.3.1`. The browser packages support the first two.
        pub versions: Versions = Versions(vec![Version::V2_1_0, Version::V2_2_0]),
        /// Address and port on which the node receives results from directory servers, over mutual TLS. Required with
        /// directory servers.
        pub results_listen: Option<SocketAddr> = None,
        /// Public URL of `results_listen` for directory servers, such as `https://threeds.example.com:8443`.
        pub results_url: Option<BaseUrl> = None,
        /// PEM file with the certificate chain of `results_listen`.
        pub results_cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of that certificate.
        pub results_key_file: Option<PathBuf> = None,
        /// Timeout of a request to a directory server or vendor, at most 30 seconds.
        pub answer_timeout: Duration = Duration::from_secs(10),
        /// Interval between refreshes of the card ranges: from 1 hour to 24 hours.
        pub refresh_period: Duration = HOUR.saturating_mul(4),
        /// Retention of finished sessions, with their ids and statuses: from 1 hour to 8784 hours (366
        /// days).
        pub session_retention: Duration = HOUR.saturating_mul(90 * 24),
        /// Retention of authentication values, device data and issuer messages in a session: from 1 hour to
        /// `session_retention`.
        pub detail_retention: Duration = HOUR.saturating_mul(24),
        /// Maximum number of cards per public key and client address that issuers decline within an hour, from 1 to
        /// 1000. Further sessions and authentications are rejected with 429.
        pub refusal_limit: usize = 20,
        /// Whether public keys may create sessions with `authentication_request` and `callback_urls`. The hosted page
        /// then reveals to any holder of a public key whether an issuer accepts a card.
        pub public_hosted_sessions: bool = false,
    }
}

impl Threeds {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let results = [
            ("threeds.results_listen", self.results_listen.is_some()),
            ("threeds.results_url", self.results_url.is_some()),
            (
                "threeds.results_cert_file",
                self.results_cert_file.is_some(),
            ),
            ("threeds.results_key_file", self.results_key_file.is_some()),
        ];
        if results.iter().any(|(_, is_set)| *is_set) {
            for (location, _) in results.iter().filter(|(_, is_set)| !is_set) {
                let message = "required, because other threeds.results_* settings are set";
                findings.push(Finding::error(*location, message));
            }
        }
        if !(HOUR..=HOUR.saturating_mul(24)).contains(&self.refresh_period) {
            let message = "must be from 1h to 24h";
            findings.push(Finding::error("threeds.refresh_period", message));
        }
        self.check_retention(findings);
        if !(1..=REFUSAL_LIMIT_MAX).contains(&self.refusal_limit) {
            let message = "must be from 1 to 1000";
            findings.push(Finding::error("threeds.refusal_limit", message));
        }
        if self.public_hosted_sessions {
            let message = "public keys can find out which cards issuers accept (card testing): set it to \
                           false and create hosted sessions with a private key";
            findings.push(Finding::warning("threeds.public_hosted_sessions", message));
        }
        if self.versions.0.is_empty() {
            let message = "must contain at least one version";
            findings.push(Finding::error("threeds.versions", message));
        }
        if self.answer_timeout.is_zero() || self.answer_timeout > Duration::from_secs(30) {
            let message = "must be more than 0s and at most 30s";
            findings.push(Finding::error("threeds.answer_timeout", message));
        }
        for (location, text, max_length) in [
            ("threeds.reference_number", &self.reference_number, 32),
            ("threeds.server_name", &self.server_name, 20),
        ] {
            if text.is_empty() || text.len() > max_length || !text.is_ascii() {
                let message = format!("must be 1 to {max_length} ASCII characters");
                findings.push(Finding::error(location, message));
            }
        }
    }
}

impl Threeds {
    fn check_retention(&self, findings: &mut Vec<Finding>) {
        if !(HOUR..=SESSION_RETENTION_MAX).contains(&self.session_retention) {
            let message = "must be from 1h to 8784h (366 days)";
            findings.push(Finding::error("threeds.session_retention", message));
        }
        // A session that is not authenticated expires after an hour, and needs its details until then.
        if self.detail_retention < HOUR || self.detail_retention > self.session_retention {
            let message = "must be from 1h to threeds.session_retention";
            findings.push(Finding::error("threeds.detail_retention", message));
        }
    }
}

/// Protocol versions, in ascending order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Versions(Vec<Version>);

impl Versions {
    pub fn new(mut versions: Vec<Version>) -> Self {
        versions.sort_unstable();
        versions.dedup();
        Self(versions)
    }

    pub fn all(&self) -> &[Version] {
        &self.0
    }
}

impl Setting for Versions {
    const IS_LIST: bool = true;

    fn kind() -> String {
        "list of versions".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let versions: Result<Vec<Version>, _> = text
            .split(',')
            .map(|version| version.trim().parse())
            .collect();
        let versions =
            versions.map_err(|_| "must be a list of 2.1.0, 2.2.0 and 2.3.1".to_owned())?;
        Ok(Self::new(versions))
    }

    fn text(&self) -> Option<String> {
        let texts: Vec<String> = self.0.iter().map(Version::to_string).collect();
        Some(texts.join(","))
    }
}
