//! Builds the documentation site from docs/, lints it, and executes its commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cloakroom_devtools::{packages, process, servers, workspace};

use crate::programs;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Check style and spelling, openapi.json and the types generated from it, instead of building the site
    #[arg(long)]
    lint: bool,
    /// Execute the commands of the pages against temporary vaults, instead of building the site
    #[arg(long, conflicts_with = "lint")]
    execute: bool,
    /// Execute only the pages whose path contains this text; can be repeated
    #[arg(long, value_name = "TEXT", requires = "execute")]
    page: Vec<String>,
    /// Write the responses of the API reference to docs/api/responses.json
    #[arg(long, requires = "execute")]
    record: bool,
    /// Execute with this program instead of building one
    #[arg(long, value_name = "FILE", requires = "execute")]
    binary: Option<PathBuf>,
}

/// Without arguments: builds the site in docs/.vitepress/dist. The build prints the number of pages and links, and
/// fails on dead links, outdated pictures and requests to other hosts.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = workspace::root().join("docs");
    install(&folder)?;
    if arguments.execute {
        return execute(&folder, arguments);
    }
    if arguments.lint {
        lint_style(&folder)?;
        return npm_script(&folder, "lint", |_| {});
    }
    npm_script(&folder, "build", |_| {})
}

/// Runs the commands of the pages, with the program under test in `PATH`.
fn execute(folder: &Path, arguments: &Arguments) -> Result<()> {
    servers::install_missing()?;
    let program = match &arguments.binary {
        Some(program) => std::path::absolute(program)?,
        None => programs::build("cloakroom")?,
    };
    npm_script(folder, "execute", |command| {
        command
            .arg("--")
            .arg("--program")
            .arg(program)
            .arg("--folder")
            .arg(workspace::target_folder().join("docs"));
        for page in &arguments.page {
            command.args(["--page", page]);
        }
        if arguments.record {
            command.arg("--record");
        }
    })
}

/// Runs codespell, in an environment of its own, with the words of docs/style.
fn lint_style(folder: &Path) -> Result<()> {
    let environment = workspace::target_folder().join("docs/python");
    let program = environment.join("bin/codespell");
    if !program.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&environment);
        process::run_successfully(venv)?;
        let mut pip = Command::new(environment.join("bin/pip"));
        pip.args(["install", "--quiet", "--requirement"])
            .arg(folder.join("style/requirements.txt"));
        process::run_successfully(pip)?;
    }
    let mut codespell = Command::new(program);
    codespell
        .arg("--config")
        .arg(folder.join("style/codespell.cfg"))
        .args(["README.md", "CHANGELOG.md", "ARCHITECTURE.md"])
        .args(["CONTRIBUTING.md", "SECURITY.md", "docs", "examples"])
        .current_dir(workspace::root());
    process::run_successfully(codespell)
}

fn npm_script(folder: &Path, script: &str, arguments: impl FnOnce(&mut Command)) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", script]).current_dir(folder);
    arguments(&mut npm);
    process::run_successfully(npm)
}

/// Installs the packages of the lock file, unless they are installed.
fn install(folder: &Path) -> Result<()> {
    if !workspace::has_program("node") || !workspace::has_program("npm") {
        packages::install(&["nodejs", "npm"])?;
    }
    let lock = fs::read(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/installed-from");
    if fs::read(&stamp).is_ok_and(|from| from == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.arg("ci").current_dir(folder);
    process::run_successfully(npm)?;
    fs::write(&stamp, lock).with_context(|| stamp.display().to_string())
}
