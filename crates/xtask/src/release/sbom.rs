//! The software bill of materials (SBOM) of the binary, as CycloneDX JSON.

use std::path::Path;

use anyhow::{Context, Result};
use cloakroom_devtools::{process, workspace};

use super::Release;
use super::tools::Tools;

/// Validates against the JSON schema of the specification.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(f'invalid SBOM: {error}' if error else 0)
";

/// Writes the SBOM of cloakroom-cli with the crates that are compiled into it, and validates it.
pub(super) fn write(tools: &Tools, release: &Release) -> Result<()> {
    const NAME: &str = "cloakroom-sbom";
    let mut cargo = workspace::cargo();
    let path = tools.command(Path::new("cargo-cyclonedx"))?;
    let path = path.get_envs().find(|(name, _)| *name == "PATH");
    let (_, path) = path.context("the tools have a path")?;
    cargo.env("PATH", path.unwrap_or_default());
    cargo.env("SOURCE_DATE_EPOCH", &release.epoch);
    cargo.args(["cyclonedx", "--quiet", "--format", "json"]);
    cargo.args(["--spec-version", "1.5", "--no-build-deps"]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu"]);
    cargo.args(["--override-filename", NAME]);
    cargo.args(["--manifest-path", "crates/cloakroom-cli/Cargo.toml"]);
    process::run_successfully(cargo)?;

    // Written beside the manifest of every crate of the workspace.
    let file = release
        .out
        .join(format!("cloakroom-{}.cdx.json", release.version));
    let crates = workspace::root().join("crates");
    let written = std::fs::read_to_string(crates.join(format!("cloakroom-cli/{NAME}.json")))?;
    // The references of our own crates contain the folder that they were built in.
    let root = workspace::root().canonicalize()?;
    std::fs::write(&file, written.replace(&*root.to_string_lossy(), "/source"))?;
    for folder in std::fs::read_dir(crates)? {
        let written = folder?.path().join(format!("{NAME}.json"));
        if written.exists() {
            std::fs::remove_file(written)?;
        }
    }
    let mut python = tools.command(Path::new("python3"))?;
    python.args(["-c", VALIDATE]).arg(&file);
    process::run_successfully(python)
}
