//! The operator's file that says who is asked about cards.
//!
//! ```toml
//! [[directory]]
//! network = "visa"
//! tenants = "production"                       # or "test"
//! urls = ["https://ds.example.com/3ds"]        # the second one if the first cannot be reached
//! operator_id = "op-1234"                      # as the network calls you, if it does
//! cert_file = "/etc/cloakroom/visa.pem"
//! key_file = "/etc/cloakroom/visa.key"
//! ca_file = "/etc/cloakroom/visa-ca.pem"
//! senders = ["ds.example.com"]                 # names in certificates that may tell results;
//!                                              # needed for production tenants
//!
//! [[vendor]]                                   # in place of directories, for all networks
//! tenants = "production"
//! url = "https://3ds.example.com"
//! api_key_file = "/etc/cloakroom/3ds.key"
//! ca_file = "/etc/cloakroom/public-ca.pem"
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderValue;
use rustls_pki_types::ServerName;
use serde::Deserialize;

use super::directory::{Directory, Loaded, Senders};
use super::line::{self, Credentials, Line};
use super::vendor::Vendor;
use super::{Adapter, CardNetworks, Error, Identity, Network};
use crate::config;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    directory: Vec<DirectoryText>,
    #[serde(default)]
    vendor: Vec<VendorText>,
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
struct DirectoryText {
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
struct VendorText {
    #[serde(default)]
    tenants: Tenants,
    url: String,
    api_key_file: PathBuf,
    ca_file: PathBuf,
}

/// Reads the file. What is wrong is told with the entry that it is wrong in.
pub(super) fn load(path: &Path, settings: &config::Threeds) -> Result<CardNetworks, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| error.kind().to_string());
    let networks = text.and_then(|text| parse(&text, settings));
    networks.map_err(|reason| Error::Settings {
        place: format!("threeds.networks_file, {}", path.display()),
        reason,
    })
}

fn parse(text: &str, settings: &config::Threeds) -> Result<CardNetworks, String> {
    let file: FileText = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    Ok(CardNetworks {
        production: adapter(&file, Tenants::Production, settings)?,
        test: adapter(&file, Tenants::Test, settings)?,
    })
}

fn adapter(
    file: &FileText,
    tenants: Tenants,
    settings: &config::Threeds,
) -> Result<Option<Arc<Adapter>>, String> {
    let mut directories: Vec<Directory> = Vec::new();
    for text in file.directory.iter().filter(|one| one.tenants == tenants) {
        let name = text.network.name();
        if directories.iter().any(|one| one.network == text.network) {
            return Err(format!(
                "two directory servers of {name} for the same tenants"
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
        return Err("directory servers need threeds.results_listen to tell results".to_owned());
    }
    match (vendors.next(), vendors.next(), directories.is_empty()) {
        (None, _, true) => Ok(None),
        (None, _, false) => Ok(Some(Arc::new(Adapter::Directories(directories)))),
        (Some(text), None, true) => {
            let vendor = vendor(text, settings).map_err(|reason| format!("vendor: {reason}"))?;
            Ok(Some(Arc::new(Adapter::Vendor(Box::new(vendor)))))
        }
        (Some(_), _, _) => {
            Err("tenants of a kind have either one vendor or directory servers".to_owned())
        }
    }
}

fn directory(text: &DirectoryText, settings: &config::Threeds) -> Result<Directory, String> {
    let credentials = Credentials {
        certificate: Some(&text.cert_file),
        key: Some(&text.key_file),
        ca: &text.ca_file,
    };
    let names = text.senders.iter().map(|name| {
        ServerName::try_from(name.clone()).map_err(|_| "a sender must be a host name".to_owned())
    });
    if text.senders.is_empty() && text.tenants == Tenants::Production {
        let reason = "needs `senders`: its authority issues certificates to others as well";
        return Err(reason.to_owned());
    }
    let roots = line::roots(&text.ca_file)?;
    let suffix = match text.tenants {
        Tenants::Production => "",
        Tenants::Test => "-test",
    };
    Ok(Directory {
        network: text.network,
        key: format!("{}{suffix}", text.network.name()),
        identity: Identity::of(settings),
        operator_id: text.operator_id.clone(),
        line: Line::new(&credentials, &text.urls)?,
        answer_timeout: settings.answer_timeout,
        senders: Senders {
            verifier: line::verifier(roots.clone())?,
            roots,
            names: names.collect::<Result<_, _>>()?,
        },
        ranges: ArcSwap::from_pointee(Loaded::default()),
    })
}

fn vendor(text: &VendorText, settings: &config::Threeds) -> Result<Vendor, String> {
    let credentials = Credentials {
        certificate: None,
        key: None,
        ca: &text.ca_file,
    };
    let path = &text.api_key_file;
    let key = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {}", path.display(), error.kind()))?;
    let key = HeaderValue::try_from(key.trim())
        .map_err(|_| format!("{} holds no key", path.display()))?;
    let urls = std::slice::from_ref(&text.url);
    let line = Line::new(&credentials, urls)?.with_header("apikey", key);
    Ok(Vendor::new(
        Identity::of(settings),
        line,
        settings.answer_timeout,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = "[[directory]]\nnetwork = \"visa\"\nurls = [\"https://v\"]\n\
                             cert_file = \"/none\"\nkey_file = \"/none\"\nca_file = \"/none\"";

    #[test]
    fn what_is_wrong_in_the_file_is_told() {
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
