//! The measured programs: built, or given on the command line.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::workspace;
use serde_json::Value;
use tokio::process::Command;

use super::{Arguments, proxied};

const PROFILE: &str = "dist";
const PROFILE_SHORT: &str = "release";

pub(super) struct Programs {
    pub(super) node: PathBuf,
    /// Only if one node is measured by itself.
    pub(super) hello: Option<PathBuf>,
    /// Only if proxied requests are measured.
    pub(super) proxied: Option<proxied::Programs>,
}

impl Programs {
    /// Builds the programs that are not given, separately: built together, the node would get features of dependencies
    /// that only the other program enables.
    pub(super) async fn of(arguments: &Arguments) -> Result<Self> {
        let is_proxied = arguments.proxy || arguments.slow_destinations.is_some();
        let needs_hello = arguments.nodes.is_empty() && !is_proxied;
        if arguments.built {
            let example = |name: &str| workspace::built(&format!("examples/{name}"));
            return Ok(Self {
                node: workspace::built("cloakroom")?,
                hello: needs_hello.then(|| example("hello")).transpose()?,
                proxied: match is_proxied {
                    true => Some(proxied::Programs {
                        destination: example("destination")?,
                        reverse_proxy: example("reverse_proxy")?,
                    }),
                    false => None,
                },
            });
        }
        let usual = if arguments.short {
            PROFILE_SHORT
        } else {
            PROFILE
        };
        let profile = arguments.profile.as_deref().unwrap_or(usual);
        let node = ["--package=cloakroom-cli", "--bin=cloakroom"];
        let example = async |name: &str| {
            let what = ["--package=cloakroom-bench", "--example", name];
            build(name, &what, profile).await
        };
        Ok(Self {
            node: match &arguments.binary {
                Some(file) => std::path::absolute(file)?,
                None => build("cloakroom", &node, profile).await?,
            },
            hello: match &arguments.hello {
                _ if !needs_hello => None,
                Some(file) => Some(std::path::absolute(file)?),
                None => Some(example("hello").await?),
            },
            proxied: match is_proxied {
                true => Some(proxied::Programs {
                    destination: example("destination").await?,
                    reverse_proxy: example("reverse_proxy").await?,
                }),
                false => None,
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
