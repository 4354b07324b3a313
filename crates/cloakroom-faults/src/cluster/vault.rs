//! The vault in the cluster: its roles, its schema, one tenant and the keys that clients use.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::Cluster;
use super::command::capture;

/// API keys of the tenant of a run.
#[derive(Clone)]
pub(crate) struct Keys {
    /// Creates, changes and deletes; sees data masked.
    pub(crate) writing: String,
    pub(crate) revealing: String,
    /// Makes intents.
    pub(crate) intending: String,
    /// Sees connection formulas, which are no tenant's own.
    pub(crate) catalog: String,
}

pub(crate) const OWNER_ROLE: &str = "cloakroom_owner";
pub(crate) const NODE_ROLE: &str = "cloakroom";

impl Cluster {
    /// What docs/operate/install.md says, from roles to keys.
    pub(crate) async fn install_vault(&self) -> Result<Keys> {
        let primary = self.primary().await.context("no primary to install on")?;
        for (role, password) in [
            (OWNER_ROLE, &self.secrets.owner),
            (NODE_ROLE, &self.secrets.node),
        ] {
            let statement = format!("create role {role} login password '{password}'");
            primary.sql("postgres", &statement).await?;
        }
        let statement = format!("create database cloakroom owner {OWNER_ROLE}");
        primary.sql("postgres", &statement).await?;

        let root_key = self.nodes[0].config_folder().join("root.key");
        let path = root_key.display().to_string();
        self.vault(&["root-key", "create", &path]).await?;
        for node in &self.nodes[1..] {
            std::fs::copy(&root_key, node.config_folder().join("root.key"))?;
        }
        self.migrate().await?;
        let told = self
            .vault(&["tenant", "create", "--name", "Faults", "--type", "test"])
            .await?;
        let tenant = named(&told, "tenant")?.to_owned();
        let tokens = "/ mask token:create,token:read,token:update,token:delete";
        let catalog = ["--permission", "orchestration:connection_formulas"];
        let intending = ["--permission", "token-intent:create"];
        Ok(Keys {
            writing: self.key(&tenant, ["--rule", tokens]).await?,
            revealing: self.key(&tenant, ["--rule", "/ reveal token:read"]).await?,
            intending: self.key(&tenant, intending).await?,
            catalog: self.key(&tenant, catalog).await?,
        })
    }

    async fn migrate(&self) -> Result<()> {
        let node = &self.nodes[0];
        let migrate = || {
            let mut migrate = node.program(&self.binary);
            let url = node.config_folder().join("owner.url");
            migrate.args(["migrate", "--grant-to", NODE_ROLE]);
            migrate.env("CLOAKROOM__DATABASE__URL_FILE", url);
            migrate
        };
        patiently(migrate).await?;
        Ok(())
    }

    /// A command of the vault, on the machine of the first node.
    pub(crate) async fn vault(&self, arguments: &[&str]) -> Result<String> {
        let command = || {
            let mut command = self.nodes[0].program(&self.binary);
            command.args(arguments);
            command
        };
        patiently(command).await
    }

    /// The key of an application that may do this.
    async fn key(&self, tenant: &str, granted: [&str; 2]) -> Result<String> {
        let [how, what] = granted;
        let told = self
            .vault(&[
                "app", "create", "--tenant", tenant, "--name", what, "--type", "private", how, what,
            ])
            .await?;
        let app = named(&told, "application")?.to_owned();
        let told = self
            .vault(&["key", "create", "--tenant", tenant, "--app", &app])
            .await?;
        Ok(told.lines().next().context("no key was made")?.to_owned())
    }

    /// `cloakroom doctor` must find nothing to complain about.
    pub(crate) async fn examine(&self) -> Result<()> {
        let told = self.vault(&["doctor"]).await?;
        let complaints: Vec<&str> = told.lines().filter(|line| is_complaint(line)).collect();
        ensure!(
            complaints.is_empty(),
            "cloakroom doctor complains about the reference deployment:\n{}",
            complaints.join("\n")
        );
        Ok(())
    }
}

/// Tries again while the database is out of reach, which says that nothing was done: HAProxy has to find the primary
/// first, and a busy machine takes its time.
async fn patiently(command: impl Fn() -> Command) -> Result<String> {
    for _ in 0..10 {
        match capture(command()).await {
            Err(error) if error.to_string().contains("cannot be reached") => {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            done => return done,
        }
    }
    capture(command()).await
}

fn is_complaint(line: &str) -> bool {
    let mark = line.split_whitespace().next();
    matches!(mark, Some("warn" | "BAD"))
}

/// The id in the line `<what> <id>`.
fn named<'a>(told: &'a str, what: &str) -> Result<&'a str> {
    told.lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
        .with_context(|| format!("no {what} was made:\n{told}"))
}

/// The shipped limits, each so high that it refuses nobody: limits are not what is tested here.
pub(crate) fn high_limits(shipped: &Path) -> Result<String> {
    let text = std::fs::read_to_string(shipped)
        .with_context(|| format!("the table of limits, {}", shipped.display()))?;
    let raised = text.lines().map(|line| match line.split_once(" = ") {
        Some(("requests", _)) => "requests = 100000\n".to_owned(),
        Some(("window", _)) => "window = \"1s\"\n".to_owned(),
        _ => format!("{line}\n"),
    });
    Ok(raised.collect())
}
