//! Files of a release: comparison of two builds, checksums, signature and overview.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::process;
use comfy_table::Table;
use comfy_table::presets::NOTHING;

use super::Release;

const CHECKSUMS: &str = "SHA256SUMS";

/// Files in `folder`, by name.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// Returns an error that names files of `first` which differ in `second`, or the number of files.
pub(super) fn compare(first: &Path, second: &Path) -> Result<usize> {
    let files = list(first)?;
    let mut different = Vec::new();
    for file in &files {
        let name = file.file_name().context("a file without a name")?;
        // A file that only one build has differs too.
        if std::fs::read(file)? != std::fs::read(second.join(name)).unwrap_or_default() {
            different.push(name.to_string_lossy().into_owned());
        }
    }
    ensure!(
        different.is_empty(),
        "not reproducible: {}",
        different.join(", ")
    );
    Ok(files.len())
}

pub(super) fn write_checksums(folder: &Path) -> Result<()> {
    let mut lines = String::new();
    for file in list(folder)? {
        let name = file.file_name().context("a file without a name")?;
        lines.push_str(&format!("{}  {}\n", digest(&file)?, name.to_string_lossy()));
    }
    std::fs::write(folder.join(CHECKSUMS), lines)?;
    Ok(())
}

fn digest(file: &Path) -> Result<String> {
    let output = Command::new("sha256sum").arg("--").arg(file).output()?;
    ensure!(output.status.success(), "sha256sum {}", file.display());
    let line = String::from_utf8(output.stdout)?;
    let digest = line
        .split(' ')
        .next()
        .context("sha256sum printed nothing")?;
    Ok(digest.to_owned())
}

/// Signs the checksums, which cover every other file. minisign asks for the password of the key.
pub(super) fn sign(release: &Release, key: &Path) -> Result<()> {
    let mut minisign = Command::new("minisign");
    minisign.arg("-S").arg("-s").arg(key);
    minisign
        .args(["-t", &format!("cloakroom {}", release.version)])
        .arg("-m")
        .arg(release.out.join(CHECKSUMS));
    process::run_successfully(minisign).context("signing the checksums")
}

pub(super) fn print_table(folder: &Path) -> Result<()> {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["artifact", "bytes", "SHA-256"]);
    for file in list(folder)? {
        let name = file.file_name().context("a file without a name")?;
        table.add_row([
            name.to_string_lossy().into_owned(),
            std::fs::metadata(&file)?.len().to_string(),
            digest(&file)?,
        ]);
    }
    println!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_that_differ_between_builds_are_named() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |folder: &Path, name: &str, text: &str| {
            std::fs::write(folder.join(name), text).unwrap();
        };
        for folder in [first.path(), second.path()] {
            write(folder, "same.deb", "same");
        }
        assert_eq!(compare(first.path(), second.path()).unwrap(), 1);

        write(first.path(), "other.rpm", "one");
        write(second.path(), "other.rpm", "two");

        let error = compare(first.path(), second.path()).unwrap_err();
        assert_eq!(error.to_string(), "not reproducible: other.rpm");
    }
}
