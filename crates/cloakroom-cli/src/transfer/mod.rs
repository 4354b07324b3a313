//! `cloakroom import` and `cloakroom export`: tokens in files.

mod export;
mod import;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::export::{ExportCommand, export};
pub(crate) use self::import::{ImportArguments, import};

/// A public key of an audit authority, from `cloakroom audit public-key`.
fn parse_public_key(text: &str) -> anyhow::Result<[u8; 32]> {
    let bytes = hex::decode(text).context("--public-key must be hexadecimal")?;
    match bytes.try_into() {
        Ok(key) => Ok(key),
        Err(_) => bail!("--public-key must have 64 hexadecimal digits"),
    }
}

/// Counts tokens on a terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{human_pos} tokens, {per_sec}, {elapsed}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
