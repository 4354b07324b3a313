//! Checks of a release: linters, signature, hardening, chart, and the install pages executed word for word.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::{process, workspace};

use super::tools::Tools;
use super::{Arguments, run as build_release};

pub(super) fn run(binary: &Path) -> Result<()> {
    let tools = Tools::install()?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("out");
    let (secret, public) = (
        folder.path().join("test.key"),
        folder.path().join("test.pub"),
    );
    tool(
        &tools,
        "minisign",
        &["-G", "-W", "-s", text(&secret)?, "-p", text(&public)?],
    )?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    build_release(&Arguments {
        binary: vec![binary.to_owned()],
        version,
        out: out.clone(),
        without_arm64: true,
        sign_key: Some(secret),
    })?;
    verify(&tools, &out, &public)?;

    lint(&tools, &out)?;
    inspect_images(&tools, &out)?;
    let cache = workspace::target_folder().join("tools");
    for (script, artifact) in [
        ("test-install.sh", "_amd64.deb"),
        ("test-install.sh", ".x86_64.rpm"),
        ("test-container.sh", "-amd64-image.tar"),
        ("test-compose.sh", "-amd64-image.tar"),
        ("test-dev-container.sh", "-amd64-dev-image.tar"),
    ] {
        println!("packages: {script} {artifact}");
        let mut command = tools.command(&workspace::root().join("packaging").join(script))?;
        command.arg(find(&out, artifact)?).arg(&cache);
        process::run_successfully(command)?;
    }
    println!("packages: the chart");
    process::run_successfully(tools.command(&workspace::root().join("packaging/test-chart.sh"))?)
}

/// Verifies the download as docs/operate/releases.md describes it.
fn verify(tools: &Tools, out: &Path, public: &Path) -> Result<()> {
    let mut minisign = tools.command(Path::new("minisign"))?;
    minisign.args(["-V", "-p", text(public)?, "-m", "SHA256SUMS"]);
    process::run_successfully({
        minisign.current_dir(out);
        minisign
    })?;
    let mut checksums = tools.command(Path::new("sha256sum"))?;
    checksums.args(["--check", "--quiet", "SHA256SUMS"]);
    checksums.current_dir(out);
    process::run_successfully(checksums)
}

fn lint(tools: &Tools, out: &Path) -> Result<()> {
    println!("packages: shellcheck, hadolint, lintian");
    let mut scripts = Vec::new();
    for folder in ["packaging", "packaging/scripts"] {
        for entry in std::fs::read_dir(workspace::root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "sh") {
                scripts.push(text(&path)?.to_owned());
            }
        }
    }
    ensure!(!scripts.is_empty(), "there are no scripts to check");
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let options = ["--external-sources", "--source-path=SCRIPTDIR"];
    tool(tools, "shellcheck", &[&options[..], &scripts].concat())?;
    for name in ["Containerfile", "Containerfile.dev"] {
        tool(tools, "hadolint", &[&format!("packaging/image/{name}")])?;
    }
    let package = find(out, "_amd64.deb")?;
    tool(
        tools,
        "lintian",
        &["--allow-root", "--fail-on", "error", text(&package)?],
    )?;
    let package = find(out, ".x86_64.rpm")?;
    tool(
        tools,
        "rpm",
        &["--checksig", "--nosignature", text(&package)?],
    )
}

/// Reads each image as Docker and as other programs do, and compares its digest with the published one.
fn inspect_images(tools: &Tools, out: &Path) -> Result<()> {
    println!("packages: images");
    for name in ["-amd64-image", "-amd64-dev-image"] {
        let archive = find(out, &format!("{name}.tar"))?;
        let published = std::fs::read_to_string(find(out, &format!("{name}.digest"))?)?;
        let inspect = |transport: &str| -> Result<String> {
            let mut skopeo = tools.command(Path::new("skopeo"))?;
            skopeo.args(["inspect", "--format", "{{.Digest}} {{.Architecture}}"]);
            skopeo.arg(format!("{transport}:{}", text(&archive)?));
            let output = skopeo.output()?;
            ensure!(
                output.status.success(),
                "skopeo cannot read {transport}:{}",
                archive.display()
            );
            Ok(String::from_utf8(output.stdout)?)
        };
        let expected = format!("{} amd64", published.trim());
        ensure!(
            inspect("oci-archive")?.trim() == expected,
            "the digest of {name}"
        );
        ensure!(
            inspect("docker-archive")?.trim().ends_with(" amd64"),
            "the manifest of {name}"
        );
    }
    Ok(())
}

fn tool(tools: &Tools, name: &str, arguments: &[&str]) -> Result<()> {
    let mut command = tools.command(Path::new(name))?;
    command.args(arguments);
    process::run_successfully(command)
}

/// The artifact whose name ends with `end`.
fn find(out: &Path, end: &str) -> Result<PathBuf> {
    for entry in std::fs::read_dir(out)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            return Ok(path);
        }
    }
    anyhow::bail!("the release has no artifact {end}")
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}
