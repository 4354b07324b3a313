//! The shop's server, as a child process.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

use super::{Language, ShopReady};

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
            Language::Node => (PathBuf::from("node"), "server/node/main.mjs"),
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
        Ok(Some(Self { program, file }))
    }

    /// Starts the server, which is killed when the process is dropped.
    pub(crate) fn start(&self, ready: &ShopReady) -> anyhow::Result<Child> {
        let process = Command::new(&self.program)
            .arg(&self.file)
            .envs(&ready.environment)
            .stdin(Stdio::null())
            // Standard output is for the result of this command.
            .stdout(std::io::stderr())
            .kill_on_drop(true)
            .spawn();
        process.with_context(|| {
            let program = self.program.display();
            format!("cannot run `{program}`: install it, or choose another `--shop-server`")
        })
    }
}

/// The interpreter with the packages of `requirements.txt`, if there is a virtual environment.
fn python(shop: &Path) -> PathBuf {
    let environment = shop.join(".venv/bin/python");
    match environment.is_file() {
        true => environment,
        false => PathBuf::from("python3"),
    }
}
