//! Permissions of files that contain secrets, and of those that decide what this process does.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::finding::Finding;
use super::{Config, Environment, Error};

const READABLE_BY_GROUP: u32 = 0o040;
const READABLE_BY_ALL: u32 = 0o004;
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In such a folder, only the owner of a file can replace it.
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

const HEADERS_FILE: &str = "telemetry.otlp_headers_file";

/// Settings whose value is a secret.
const SECRETS: [(&str, &str); 4] = [
    ("database", "url"),
    ("database", "replica_url"),
    ("redis", "url"),
    ("egress", "connect_proxy"),
];

/// The path by which to read a file that decides what this process does: a configuration, or a library. A process of root
/// rejects it if someone else can change or replace it, because it would act for them. Links are resolved first, so that
/// none is exchanged after the check.
pub(super) fn trusted(path: &Path) -> Result<PathBuf, Error> {
    if !geteuid().is_root() {
        return Ok(path.to_owned());
    }
    let unreadable = |error: std::io::Error| super::unreadable(path, &error);
    let resolved = path.canonicalize().map_err(unreadable)?;
    for part in resolved.ancestors() {
        let metadata = part.metadata().map_err(unreadable)?;
        let (user, mode) = (metadata.uid(), metadata.mode());
        let (problem, remedy) = match (user, mode & WRITABLE_BY_OTHERS) {
            (ROOT, 0) => continue,
            (ROOT, _) if metadata.is_dir() && mode & STICKY != 0 => continue,
            (ROOT, _) => ("can be written by other users".to_owned(), "chmod go-w"),
            _ => (format!("belongs to user {user}"), "chown root"),
        };
        return Err(Error::Untrusted {
            path: path.to_owned(),
            reason: format!("{0} {problem}; run `{remedy} {0}`", part.display()),
        });
    }
    Ok(resolved)
}

pub(super) fn check(config: &Config, path: Option<&Path>) -> Vec<Finding> {
    let files = [
        ("database.url_file", config.database.url_file.as_deref()),
        (
            "database.replica_url_file",
            config.database.replica_url_file.as_deref(),
        ),
        ("redis.url_file", config.redis.url_file.as_deref()),
        ("http.tls_key_file", config.http.tls_key_file.as_deref()),
        (
            "threeds.results_key_file",
            config.threeds.results_key_file.as_deref(),
        ),
        (
            "egress.connect_proxy_file",
            config.egress.connect_proxy_file.as_deref(),
        ),
        (HEADERS_FILE, config.telemetry.otlp_headers_file.as_deref()),
    ];
    let root_key = [
        (
            "root_key.pkcs11_pin_file",
            config.root_key.pkcs11_pin_file.as_deref(),
        ),
        (
            "root_key.aws_kms_credentials_file",
            config.root_key.aws_kms_credentials_file.as_deref(),
        ),
        (
            "root_key.transit_token_file",
            config.root_key.transit_token_file.as_deref(),
        ),
    ];
    let own = path.filter(|path| contains_secret(path));
    let files = files
        .into_iter()
        .chain(root_key)
        .chain([("the configuration file", own)]);
    let is_production = config.vault.environment == Environment::Production;
    let unusable = config.telemetry.headers().err();
    let unusable = unusable.map(|message| Finding::error(HEADERS_FILE, message));
    let missing = certificate_files(config).into_iter();
    let missing = missing.filter_map(|(setting, path)| check_existence(setting, path?));
    files
        .filter_map(|(location, path)| check_permissions(location, path?, is_production))
        .chain(unusable)
        .chain(missing)
        .collect()
}

/// Files of TLS, without which a node does not start.
fn certificate_files(config: &Config) -> [(&'static str, Option<&Path>); 8] {
    let (http, threeds) = (&config.http, &config.threeds);
    [
        ("http.tls_cert_file", http.tls_cert_file.as_deref()),
        ("http.tls_key_file", http.tls_key_file.as_deref()),
        (
            "threeds.results_cert_file",
            threeds.results_cert_file.as_deref(),
        ),
        (
            "threeds.results_key_file",
            threeds.results_key_file.as_deref(),
        ),
        ("database.ca_file", config.database.ca_file.as_deref()),
        ("redis.ca_file", config.redis.ca_file.as_deref()),
        ("audit.sink_ca_file", config.audit.sink_ca_file.as_deref()),
        (
            "telemetry.otlp_ca_file",
            config.telemetry.otlp_ca_file.as_deref(),
        ),
    ]
}

fn check_existence(setting: &str, path: &Path) -> Option<Finding> {
    let error = std::fs::metadata(path).err()?;
    let message = format!("cannot read {}: {}", path.display(), error.kind());
    Some(Finding::error(setting, message))
}

/// Whether the configuration file itself contains a secret.
fn contains_secret(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let Ok(table) = text.parse::<toml::Table>() else {
        return false;
    };
    let is_set = |(section, key)| {
        table
            .get(section)
            .is_some_and(|section| section.get(key).is_some())
    };
    SECRETS.into_iter().any(is_set)
}

fn check_permissions(location: &str, path: &Path, is_production: bool) -> Option<Finding> {
    let metadata = std::fs::metadata(path).ok()?;
    let mode = metadata.mode();
    // The group of a file of root is that of the service, which must not change its own secrets.
    let is_private = mode & READABLE_BY_GROUP == 0 || metadata.uid() == ROOT;
    let others = match mode & READABLE_BY_ALL {
        0 if is_private => return None,
        0 => "its group",
        _ => "every user of this machine",
    };
    let message = format!(
        "{} holds a secret and can be read by {others}: chmod 0600 or 0400, or 0440 if it belongs to root",
        path.display()
    );
    Some(match is_production && mode & READABLE_BY_ALL != 0 {
        true => Finding::error(location, message),
        false => Finding::warning(location, message),
    })
}
