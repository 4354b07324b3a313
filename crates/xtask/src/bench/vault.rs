//! The vault that is measured: its program, its root key, and one test tenant with two keys.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::command::capture;
use super::load::Operation;
use crate::workspace;

/// Builds the node and says where cargo put it.
pub(super) async fn build(profile: &str) -> Result<PathBuf> {
    let mut cargo = Command::from(workspace::cargo());
    cargo
        .args(["build", "--locked", "--package", "cloakroom-cli"])
        .args(["--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let output = cargo.spawn()?.wait_with_output().await?;
    ensure!(output.status.success(), "the node does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    executable(&messages).context("cargo names no program")
}

fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name") == Some(&Value::from("cloakroom")))
        .find_map(|message| Some(message.get("executable")?.as_str()?.into()))
}

/// Makes the same tables and indexes in another database.
pub(super) async fn migrate(binary: &Path, database_url: &str) -> Result<()> {
    let mut command = bare(binary);
    command
        .arg("migrate")
        .env("CLOAKROOM__DATABASE__URL", database_url);
    capture(command).await.map(drop)
}

pub(super) struct Vault {
    pub(super) keys: Keys,
    binary: PathBuf,
    database_url: String,
    root_key: PathBuf,
}

#[derive(Clone)]
pub(super) struct Keys {
    masking: String,
    revealing: String,
}

impl Keys {
    pub(super) fn of(&self, operation: Operation) -> &str {
        match operation {
            Operation::Create | Operation::CreateOnce | Operation::GetMasked => &self.masking,
            Operation::GetRevealed => &self.revealing,
        }
    }
}

impl Vault {
    pub(super) async fn create(binary: &Path, database_url: &str, folder: &Path) -> Result<Self> {
        let mut vault = Self {
            keys: Keys {
                masking: String::new(),
                revealing: String::new(),
            },
            binary: binary.to_owned(),
            database_url: database_url.to_owned(),
            root_key: folder.join("root.key"),
        };
        let mut root_key = bare(binary);
        root_key.args(["root-key", "create"]).arg(&vault.root_key);
        capture(root_key).await?;
        migrate(binary, database_url).await?;

        let tenant = vault
            .run(&["tenant", "create", "--name", "Bench", "--type", "test"])
            .await?;
        let tenant = named(&tenant, "tenant")?;
        vault.keys = Keys {
            masking: vault.key(tenant, "/ mask token:create,token:read").await?,
            revealing: vault.key(tenant, "/ reveal token:read").await?,
        };
        Ok(vault)
    }

    /// The vault's program with all settings but these at their defaults.
    pub(super) fn command(&self, launcher: &[&str]) -> Command {
        let mut command = match launcher {
            [] => bare(&self.binary),
            [program, arguments @ ..] => {
                let mut command = bare(Path::new(program));
                command.args(arguments).arg(&self.binary);
                command
            }
        };
        command
            .env("CLOAKROOM__DATABASE__URL", &self.database_url)
            .env("CLOAKROOM__ROOT_KEY__FILE", &self.root_key)
            // What limits cost is measured apart.
            .env("CLOAKROOM__LIMITS__ENABLED", "false");
        command
    }

    /// The key of a new application with this one rule.
    async fn key(&self, tenant: &str, rule: &str) -> Result<String> {
        let app = self
            .run(&[
                "app", "create", "--tenant", tenant, "--name", rule, "--type", "private", "--rule",
                rule,
            ])
            .await?;
        let app = named(&app, "application")?;
        let said = self
            .run(&["key", "create", "--tenant", tenant, "--app", app])
            .await?;
        Ok(said.lines().next().context("no key was made")?.to_owned())
    }

    async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(&[]);
        command.args(arguments);
        capture(command).await
    }
}

/// The person's own settings have no say in a measurement.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// The id in the line `<what> <id>`.
fn named<'a>(said: &'a str, what: &str) -> Result<&'a str> {
    said.lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
        .with_context(|| format!("no {what} was made:\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"tokio"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"cloakroom"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"cloakroom"},"executable":"/t/dist/cloakroom"}
{"reason":"build-finished","success":true}"#;

        assert_eq!(executable(messages), Some("/t/dist/cloakroom".into()));
    }

    #[test]
    fn ids_are_read_from_what_the_commands_say() {
        let said = "tenant 0b1c\nnext: `cloakroom app create --tenant 0b1c`\n";

        assert_eq!(named(said, "tenant").unwrap(), "0b1c");
        assert!(named(said, "application").is_err());
    }
}
