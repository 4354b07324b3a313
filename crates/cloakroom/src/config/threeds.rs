//! Settings of 3-D Secure.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cloakroom_emv3ds::Version;

use super::BaseUrl;
use super::finding::Finding;
use super::section::section;
use super::setting::Setting;

const HOUR: Duration = Duration::from_secs(60 * 60);

section! {
    /// 3-D Secure: who is asked about cards, and where results arrive. docs/operate/threeds.md explains
    /// both. Tenants need the quota `threeds` besides.
    pub struct Threeds in "threeds" {
        /// TOML file that names directory servers or a vendor. Without it, nobody is asked, and sessions
        /// are refused.
        pub networks_file: Option<PathBuf> = None,
        /// What EMVCo calls this 3DS Server in its letter of approval.
        pub reference_number: String = "3DS_LOA_SER_NONE_020200_00000".to_owned(),
        /// The name of this 3DS Server, which begins the requestor name of Mastercard's merchants.
        pub server_name: String = "cloakroom".to_owned(),
        /// Versions of the protocol that are spoken, of `2.1.0`, `2.2.0` and `2.3.1`. Browser packages know
        /// the first two.
        pub versions: Versions = Versions(vec![Version::V2_1_0, Version::V2_2_0]),
        /// Address and port where directory servers tell results, over TLS with certificates on both
        /// sides. Needed with directory servers.
        pub results_listen: Option<SocketAddr> = None,
        /// Address under which directory servers reach it, such as `https://threeds.example.com:8443`.
        pub results_url: Option<BaseUrl> = None,
        /// PEM file with the certificate chain that directory servers are shown.
        pub results_cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of that certificate.
        pub results_key_file: Option<PathBuf> = None,
        /// How long a directory server or vendor may take for an answer.
        pub answer_timeout: Duration = Duration::from_secs(10),
        /// How often card ranges are asked for: from 1 hour to 24 hours.
        pub refresh_period: Duration = HOUR.saturating_mul(4),
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
            for (place, _) in results.iter().filter(|(_, is_set)| !is_set) {
                let message = "needed, because other settings of results are set";
                findings.push(Finding::error(*place, message));
            }
        }
        if !(HOUR..=HOUR.saturating_mul(24)).contains(&self.refresh_period) {
            let message = "must be from 1h to 24h";
            findings.push(Finding::error("threeds.refresh_period", message));
        }
        if self.versions.0.is_empty() {
            let message = "must name a version";
            findings.push(Finding::error("threeds.versions", message));
        }
        if self.answer_timeout.is_zero() || self.answer_timeout > Duration::from_secs(30) {
            let message = "must be more than 0s and at most 30s";
            findings.push(Finding::error("threeds.answer_timeout", message));
        }
        for (place, text, most) in [
            ("threeds.reference_number", &self.reference_number, 32),
            ("threeds.server_name", &self.server_name, 20),
        ] {
            if text.is_empty() || text.len() > most || !text.is_ascii() {
                let message = format!("must be 1 to {most} ASCII characters");
                findings.push(Finding::error(place, message));
            }
        }
    }
}

/// Versions of the protocol, ascending.
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
        let versions = versions.map_err(|_| "must be of 2.1.0, 2.2.0 and 2.3.1".to_owned())?;
        Ok(Self::new(versions))
    }

    fn text(&self) -> Option<String> {
        let texts: Vec<String> = self.0.iter().map(Version::to_string).collect();
        Some(texts.join(","))
    }
}
