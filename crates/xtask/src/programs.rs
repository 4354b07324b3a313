//! The programs of the workspace, built for development.

use std::path::PathBuf;

use anyhow::Result;
use cloakroom_devtools::{process, workspace};

/// Builds all programs and returns the path of one.
///
/// Building one alone would enable fewer features of its dependencies than the tests need, and compile them again. The
/// examples are built for the same reason: they enable the features of dev-dependencies.
pub(crate) fn build(name: &str) -> Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bins", "--examples"]);
    cargo.arg("--locked");
    process::run_successfully(cargo)?;
    workspace::built(name)
}
