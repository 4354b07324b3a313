//! The measured programs: built, or given on the command line.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::workspace;
use serde_json::Value;
use tokio::process::Command;

use super::Arguments;

const PROFILE: &str = "dist";
const PROFILE_SHORT: &str = "release";

pub(super) struct Programs {
    pub(super) node: PathBuf,
    /// Only if one node is measured.
    pub(super) hello: Option<PathBuf>,
}

impl Programs {
    /// Builds the programs that are not given, separately: built together, the node would get features of dependencies
    /// that only the other program enables.
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
        let hello = ["--package=cloakroom-bench", "--example=hello"];
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

/// Builds a program and returns its path.
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
    executable(&messages, name).context("cargo reports no executable")
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
    fn the_executable_is_found_in_cargo_messages() {
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
