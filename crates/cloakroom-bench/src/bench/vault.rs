//! The measured vault: its program, its root key, and one test tenant with three keys.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::command::capture;
use super::load::Operation;
use super::server::bare;

/// Creates the same tables and indexes in another database.
pub(super) async fn migrate(binary: &Path, database_url: &str) -> Result<()> {
    let mut command = bare(&[], binary);
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
    using: String,
}

impl Keys {
    /// The key that may use tokens in proxies.
    pub(super) fn using(&self) -> &str {
        &self.using
    }

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
                using: String::new(),
            },
            binary: binary.to_owned(),
            database_url: database_url.to_owned(),
            root_key: folder.join("root.key"),
        };
        let mut root_key = bare(&[], binary);
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
            using: vault.key(tenant, "/ reveal token:use").await?,
        };
        Ok(vault)
    }

    pub(super) fn program(&self) -> &Path {
        &self.binary
    }

    /// The vault's program, with defaults for all other settings.
    pub(super) fn command(&self, launcher: &[&str]) -> Command {
        let mut command = bare(launcher, &self.binary);
        command
            .env("CLOAKROOM__DATABASE__URL", &self.database_url)
            .env("CLOAKROOM__ROOT_KEY__FILE", &self.root_key);
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
        let output = self
            .run(&["key", "create", "--tenant", tenant, "--app", app])
            .await?;
        Ok(output
            .lines()
            .next()
            .context("no key in the output")?
            .to_owned())
    }

    async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(&[]);
        command.args(arguments);
        capture(command).await
    }
}

/// The id in the line `<what> <id>`.
fn named<'a>(output: &'a str, what: &str) -> Result<&'a str> {
    output
        .lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
        .with_context(|| format!("no {what} in the output:\n{output}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_what_the_commands_say() {
        let output = "tenant 0b1c\nnext: `cloakroom app create --tenant 0b1c`\n";

        assert_eq!(named(output, "tenant").unwrap(), "0b1c");
        assert!(named(output, "application").is_err());
    }
}
