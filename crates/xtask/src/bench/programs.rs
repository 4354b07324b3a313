//! The programs that are measured, built or given.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::Arguments;
use crate::{packages, workspace};

const PROFILE: &str = "dist";
const PROFILE_SHORT: &str = "release";

pub(super) struct Programs {
    pub(super) node: PathBuf,
    /// Needed when one node is measured.
    pub(super) hello: Option<PathBuf>,
}

impl Programs {
    /// What is not given is built, each by itself: built together, the node would get features of libraries that
    /// only the other one asks for.
    pub(super) async fn of(arguments: &Arguments) -> Result<Self> {
        if arguments.built {
            return Ok(Self {
                node: workspace::built("cloakroom")?,
                hello: Some(workspace::built("examples/hello")?),
            });
        }
        let usual = if arguments.short {
            PROFILE_SHORT
        } else {
            PROFILE
        };
        let profile = arguments.profile.as_deref().unwrap_or(usual);
        let node = ["--package=cloakroom-cli", "--bin=cloakroom"];
        let hello = ["--package=xtask", "--example=hello"];
        Ok(Self {
            node: match &arguments.binary {
                Some(file) => std::path::absolute(file)?,
                None => build("cloakroom", &node, profile).await?,
            },
            hello: match &arguments.hello {
                _ if !arguments.nodes.is_empty() => None,
                Some(file) => Some(std::path::absolute(file)?),
                None => Some(build("hello", &hello, profile).await?),
            },
        })
    }
}

/// Installs what `programs` need, as pairs of a program and its package.
pub(super) fn require(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs
        .iter()
        .filter(|(name, _)| !workspace::has_program(name));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    packages::install(&packages)
}

/// Builds a program and says where cargo put it.
async fn build(name: &str, what: &[&str], profile: &str) -> Result<PathBuf> {
    println!("bench: building {name}, profile {profile}");
    let mut cargo = Command::from(workspace::cargo());
    cargo
        .args(["build", "--locked"])
        .args(what)
        .args(["--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let output = cargo.spawn()?.wait_with_output().await?;
    ensure!(output.status.success(), "{name} does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    executable(&messages, name).context("cargo names no program")
}

fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name") == Some(&Value::from(name)))
        .find_map(|message| Some(message.get("executable")?.as_str()?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"tokio"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"cloakroom"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"hello"},"executable":"/t/dist/examples/hello"}
{"reason":"compiler-artifact","target":{"name":"cloakroom"},"executable":"/t/dist/cloakroom"}
{"reason":"build-finished","success":true}"#;

        assert_eq!(
            executable(messages, "cloakroom"),
            Some("/t/dist/cloakroom".into())
        );
        assert_eq!(
            executable(messages, "hello"),
            Some("/t/dist/examples/hello".into())
        );
        assert_eq!(executable(messages, "tokio"), None);
    }
}
