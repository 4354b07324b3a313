//! Files for other commands: the configuration of the vault, and variables for a shell.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cloakroom::config::{Config, Limits};

use super::ready::Ready;

/// Only the owner may read a file with keys.
const MODE: u32 = 0o600;

/// Writes the settings that other commands of `cloakroom` need to work on this vault, and returns the file.
pub(super) fn write_configuration(folder: &Path, config: &Config) -> anyhow::Result<PathBuf> {
    let mut sections = toml::Table::new();
    let urls = [
        ("database", &config.database.url),
        ("redis", &config.redis.url),
    ];
    for (section, url) in urls {
        if let Some(url) = url {
            let table = toml::Table::from_iter([("url".to_owned(), url.reveal().into())]);
            sections.insert(section.to_owned(), table.into());
        }
    }
    if let Some(file) = &config.root_key.file {
        let file = file.to_string_lossy().into_owned();
        let table = toml::Table::from_iter([("file".to_owned(), file.into())]);
        sections.insert("root_key".to_owned(), table.into());
    }
    sections.insert("limits".to_owned(), limits(&config.limits)?.into());
    let path = folder.join("cloakroom.toml");
    write_private(&path, &toml::to_string(&sections)?)?;
    Ok(path)
}

/// The settings that `cloakroom limits show` and `doctor` report.
fn limits(limits: &Limits) -> anyhow::Result<toml::Table> {
    let mut table = toml::Table::from_iter([
        ("enabled".to_owned(), limits.enabled.into()),
        ("profile".to_owned(), limits.profile.as_str().into()),
    ]);
    if let Some(file) = &limits.file {
        // Other commands may run in another folder.
        let file = std::path::absolute(file)?;
        table.insert("file".to_owned(), file.to_string_lossy().as_ref().into());
    }
    if !limits.exempt_addresses.is_empty() {
        let networks = limits.exempt_addresses.to_string();
        table.insert("exempt_addresses".to_owned(), networks.into());
    }
    Ok(table)
}

/// A file with `export` lines, which is deleted with the vault whose keys it contains.
pub(super) struct EnvironmentFile(PathBuf);

impl EnvironmentFile {
    pub(super) fn write(path: &Path, ready: &Ready<'_>) -> anyhow::Result<Self> {
        let mut lines = String::new();
        for (name, value) in ready.variables() {
            let quoted = value.replace('\'', r"'\''");
            lines.push_str(&format!("export {name}='{quoted}'\n"));
        }
        write_private(path, &lines)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for EnvironmentFile {
    fn drop(&mut self) {
        // A file that was deleted meanwhile is no error.
        let _deleted = std::fs::remove_file(&self.0);
    }
}

pub(super) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    // An existing file could be a link, or readable to other users.
    let _deleted = std::fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE);
    let mut file = options
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
