//! The shop's server, as a child process.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

use super::{Language, ShopReady, find_program};

/// Variables of this process that the server inherits. Others may have secrets that are not for the shop.
const INHERITED: [&str; 3] = ["PATH", "HOME", "ATTEMPTS_MAX"];

/// A program of the shop's server that is installed.
pub(crate) struct Server {
    program: PathBuf,
    file: PathBuf,
}

impl Server {
    /// Finds the server's files and packages in `shop`. `None` if the developer starts a server.
    pub(crate) fn find(shop: &Path, language: Language) -> anyhow::Result<Option<Self>> {
        let shop = std::path::absolute(shop)?;
        let (program, file) = match language {
            Language::Node => (find_program("node"), "server/node/main.mjs"),
            Language::Python => (python(&shop), "server/python/main.py"),
            Language::None => return Ok(None),
        };
        let file = shop.join(file);
        if !file.is_file() {
            bail!(
                "{} has no demo shop. Its files are in the folder examples/shop of Cloakroom's sources; name the folder with \
                 `--shop FOLDER`",
                shop.display()
            );
        }
        if !shop
            .join("node_modules/@basis-theory/web-elements")
            .is_dir()
        {
            bail!(
                "the packages of the shop are not installed: run `npm ci` in {}",
                shop.display()
            );
        }
        let program = program.context(
            "the program of the shop's server is not installed: install Node 20 or Python 3.10 or later, and choose it \
             with `--shop-server node` or `--shop-server python`",
        )?;
        Ok(Some(Self { program, file }))
    }

    /// Starts the server, which is killed when the process is dropped.
    pub(crate) fn start(&self, ready: &ShopReady) -> anyhow::Result<Child> {
        let inherited = INHERITED.map(|name| Some((name, std::env::var_os(name)?)));
        Command::new(&self.program)
            .arg(&self.file)
            .env_clear()
            .envs(inherited.into_iter().flatten())
            .envs(&ready.environment)
            .stdin(Stdio::null())
            // Standard output is for the result of this command.
            .stdout(std::io::stderr())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))
    }
}

/// The interpreter with the packages of `requirements.txt`, if there is a virtual environment.
fn python(shop: &Path) -> Option<PathBuf> {
    let environment = shop.join(".venv/bin/python");
    match environment.is_file() {
        true => Some(environment),
        false => find_program("python3"),
    }
}
