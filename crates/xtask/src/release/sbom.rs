//! The software bill of materials (SBOM) of a binary, as CycloneDX JSON.

use std::path::Path;

use anyhow::{Context, Result, bail};
use cloakroom_devtools::{process, workspace};

use super::tools::Tools;
use super::{Release, packaging};

/// Validates against the JSON schema of the specification.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(f'invalid SBOM: {error}' if error else 0)
";

/// Writes the SBOM of a binary of cloakroom-cli with the crates that are compiled into it, and validates it.
pub(super) fn write(tools: &Tools, release: &Release, binary: &Path) -> Result<()> {
    const NAME: &str = "cloakroom-sbom";
    let architecture = architecture_of(tools, binary)?;
    let target = match architecture.as_str() {
        "amd64" => "x86_64-unknown-linux-gnu",
        "arm64" => "aarch64-unknown-linux-gnu",
        other => bail!("unknown architecture {other}"),
    };
    let mut cargo = workspace::cargo();
    let path = tools.command(Path::new("cargo-cyclonedx"))?;
    let path = path.get_envs().find(|(name, _)| *name == "PATH");
    let (_, path) = path.context("the tools have a path")?;
    cargo.env("PATH", path.unwrap_or_default());
    cargo.env("SOURCE_DATE_EPOCH", &release.epoch);
    cargo.args(["cyclonedx", "--quiet", "--format", "json"]);
    cargo.args(["--spec-version", "1.5", "--no-build-deps"]);
    cargo.args(["--target", target]);
    cargo.args(["--override-filename", NAME]);
    cargo.args(["--manifest-path", "crates/cloakroom-cli/Cargo.toml"]);
    process::run_successfully(cargo)?;

    // Written beside the manifest of every crate of the workspace.
    let name = format!(
        "cloakroom-{}-linux-{architecture}.cdx.json",
        release.version
    );
    let file = release.out.join(name);
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

/// Debian's name of the architecture that a binary is for.
fn architecture_of(tools: &Tools, binary: &Path) -> Result<String> {
    let output = tools
        .command(&packaging("architecture.sh"))?
        .arg(binary)
        .output()?;
    let name = String::from_utf8(output.stdout)?;
    Ok(name.trim().to_owned())
}
