//! The networks file (`threeds.networks_file`), which configures the card networks.
//!
//! ```toml
//! [[directory]]
//! network = "visa"
//! tenants = "production"                       # or "test"
//! urls = ["https://ds.example.com/3ds"]        # tried in order if a connection fails
//! operator_id = "op-1234"                      # assigned by the network, if any
//! cert_file = "/etc/cloakroom/visa.pem"
//! key_file = "/etc/cloakroom/visa.key"
//! ca_file = "/etc/cloakroom/visa-ca.pem"
//! senders = ["ds.example.com"]                 # certificate names that may send results;
//!                                              # required for production tenants
//!
//! [[vendor]]                                   # instead of directories, for all networks
//! tenants = "production"
//! url = "https://3ds.example.com"
//! api_key_file = "/etc/cloakroom/3ds.key"
//! ca_file = "/etc/cloakroom/public-ca.pem"
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use cloakroom_platform::certificates::Certificate;
use cloakroom_platform::config;
use http::HeaderValue;
use rustls_pki_types::ServerName;
use serde::Deserialize;

use super::client::{self, Credentials, HttpsClient};
use super::directory::{DirectoryServer, RangeSnapshot, TrustedSenders};
use super::vendor::Vendor;
use super::{Adapter, CardNetworks, Error, Identity, Network};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworksFile {
    #[serde(default)]
    directory: Vec<DirectoryEntry>,
    #[serde(default)]
    vendor: Vec<VendorEntry>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Tenants {
    #[default]
    Production,
    Test,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectoryEntry {
    network: Network,
    #[serde(default)]
    tenants: Tenants,
    urls: Vec<String>,
    operator_id: Option<String>,
    cert_file: PathBuf,
    key_file: PathBuf,
    ca_file: PathBuf,
    #[serde(default)]
    senders: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorEntry {
    #[serde(default)]
    tenants: Tenants,
    url: String,
    api_key_file: PathBuf,
    ca_file: PathBuf,
}

/// Reads the networks file. Errors name the invalid entry.
pub(super) fn load(path: &Path, settings: &config::Threeds) -> Result<CardNetworks, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| error.kind().to_string());
    let networks = text.and_then(|text| parse(&text, settings));
    networks.map_err(|reason| Error::Settings {
        setting: format!("threeds.networks_file, {}", path.display()),
        reason,
    })
}

fn parse(text: &str, settings: &config::Threeds) -> Result<CardNetworks, String> {
    let file: NetworksFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    Ok(CardNetworks {
        production: adapter(&file, Tenants::Production, settings)?,
        test: adapter(&file, Tenants::Test, settings)?,
    })
}

fn adapter(
    file: &NetworksFile,
    tenants: Tenants,
    settings: &config::Threeds,
) -> Result<Option<Arc<Adapter>>, String> {
    let mut directories: Vec<DirectoryServer> = Vec::new();
    for text in file.directory.iter().filter(|one| one.tenants == tenants) {
        let name = text.network.name();
        if directories.iter().any(|one| one.network == text.network) {
            return Err(format!(
                "{name} has two directory servers for the same tenants"
            ));
        }
        let directory = directory(text, settings);
        directories.push(directory.map_err(|reason| format!("directory of {name}: {reason}"))?);
    }
    let mut vendors = file.vendor.iter().filter(|one| one.tenants == tenants);
    if !directories.is_empty()
        && settings.results_url.is_none()
        && settings.results_listen.is_none()
    {
        return Err(
            "directory servers require threeds.results_listen to receive results".to_owned(),
        );
    }
    match (vendors.next(), vendors.next(), directories.is_empty()) {
        (None, _, true) => Ok(None),
        (None, _, false) => Ok(Some(Arc::new(Adapter::Directories(directories)))),
        (Some(text), None, true) => {
            let vendor = vendor(text, settings).map_err(|reason| format!("vendor: {reason}"))?;
            Ok(Some(Arc::new(Adapter::Vendor(Box::new(vendor)))))
        }
        (Some(_), _, _) => Err(
            "tenants of a kind must have either one vendor or directory servers, not both"
                .to_owned(),
        ),
    }
}

fn directory(text: &DirectoryEntry, settings: &config::Threeds) -> Result<DirectoryServer, String> {
    let names = text.senders.iter().map(|name| {
        ServerName::try_from(name.clone()).map_err(|_| "a sender must be a host name".to_owned())
    });
    if text.senders.is_empty() && text.tenants == Tenants::Production {
        let reason = "needs `senders`: its authority issues certificates to others as well";
        return Err(reason.to_owned());
    }
    let suffix = match text.tenants {
        Tenants::Production => "",
        Tenants::Test => "-test",
    };
    let key = format!("{}{suffix}", text.network.name());
    let name = format!("threeds {key}");
    let certificate = Certificate::load(name, &text.cert_file, &text.key_file);
    let certificate = certificate.map_err(|error| error.to_string())?;
    let credentials = Credentials {
        certificate: Some(certificate.clone()),
        ca: &text.ca_file,
    };
    let roots = client::roots(&text.ca_file)?;
    Ok(DirectoryServer {
        network: text.network,
        key,
        certificate,
        identity: Identity::of(settings),
        operator_id: text.operator_id.clone(),
        client: HttpsClient::new(&credentials, &text.urls)?,
        answer_timeout: settings.answer_timeout,
        senders: TrustedSenders {
            verifier: client::verifier(roots.clone())?,
            roots,
            names: names.collect::<Result<_, _>>()?,
        },
        ranges: ArcSwap::from_pointee(RangeSnapshot::default()),
    })
}

fn vendor(text: &VendorEntry, settings: &config::Threeds) -> Result<Vendor, String> {
    let credentials = Credentials {
        certificate: None,
        ca: &text.ca_file,
    };
    let path = &text.api_key_file;
    let key = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {}", path.display(), error.kind()))?;
    let key = HeaderValue::try_from(key.trim())
        .map_err(|_| format!("{} contains no valid API key", path.display()))?;
    let urls = std::slice::from_ref(&text.url);
    let client = HttpsClient::new(&credentials, urls)?.with_header("apikey", key);
    Ok(Vendor::new(
        Identity::of(settings),
        client,
        settings.answer_timeout,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = "[[directory]]\nnetwork = \"visa\"\nurls = [\"https://v\"]\n\
                             cert_file = \"/none\"\nkey_file = \"/none\"\nca_file = \"/none\"";

    #[test]
    fn errors_name_the_invalid_entry() {
        let cases = [
            (
                "[[directory]]\nnetwork = \"viza\"",
                "unknown variant `viza`",
            ),
            ("[[directories]]", "unknown field `directories`"),
            (
                "[[vendor]]\nurl = \"https://v\"\napi_key_file = \"/none\"\nca_file = \"/none\"",
                "vendor: cannot read /none",
            ),
            (DIRECTORY, "directory of visa: needs `senders`"),
            (
                &format!("{DIRECTORY}\ntenants = \"test\""),
                "directory of visa: cannot read certificates from /none",
            ),
        ];
        for (text, expected) in cases {
            let reason = parse(text, &config::Threeds::default()).err();
            let reason = reason.unwrap_or_default();
            assert!(reason.starts_with(expected), "{text}: {reason}");
        }
        assert!(parse("", &config::Threeds::default()).is_ok());
    }
}
