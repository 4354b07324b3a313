//! Installs the vault in the cluster: roles, schema, a tenant and API keys.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::Cluster;
use super::command::capture;

/// API keys of the tenant of a run.
#[derive(Clone)]
pub(crate) struct Keys {
    /// Creates, updates and deletes tokens; reads masked data.
    pub(crate) write: String,
    pub(crate) reveal: String,
    pub(crate) create_intents: String,
    /// Reads connection formulas, which belong to no tenant.
    pub(crate) catalog: String,
    /// Sends the data of tokens through the proxy.
    pub(crate) proxy: String,
    /// As `write`, for the tenant that has a webhook.
    pub(crate) events: String,
    /// Creates the webhook.
    pub(crate) webhooks: String,
}

pub(crate) const OWNER_ROLE: &str = "cloakroom_owner";
pub(crate) const NODE_ROLE: &str = "cloakroom";

impl Cluster {
    /// Follows docs/operate/install.md from roles to API keys.
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
        let tenant = self.tenant("Faults").await?;
        let with_webhook = self.tenant("Events").await?;
        let tokens = "/ mask token:create,token:read,token:update,token:delete";
        let catalog = "orchestration:connection_formulas";
        Ok(Keys {
            write: self.key(&tenant, "--rule", tokens).await?,
            reveal: self.key(&tenant, "--rule", "/ reveal token:read").await?,
            create_intents: self
                .key(&tenant, "--permission", "token-intent:create")
                .await?,
            catalog: self.key(&tenant, "--permission", catalog).await?,
            proxy: self.key(&tenant, "--permission", "token:use").await?,
            events: self.key(&with_webhook, "--rule", tokens).await?,
            webhooks: self
                .key_of(
                    "management",
                    &with_webhook,
                    "--permission",
                    "webhook:create",
                )
                .await?,
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
        retry_while_unreachable(migrate).await?;
        Ok(())
    }

    /// Runs a cloakroom command on the first node.
    pub(crate) async fn vault(&self, arguments: &[&str]) -> Result<String> {
        let command = || {
            let mut command = self.nodes[0].program(&self.binary);
            command.args(arguments);
            command
        };
        retry_while_unreachable(command).await
    }

    async fn tenant(&self, name: &str) -> Result<String> {
        let output = self
            .vault(&["tenant", "create", "--name", name, "--type", "test"])
            .await?;
        Ok(created_id(&output, "tenant")?.to_owned())
    }

    /// Creates a private application with a permission or an access rule, and returns its API key.
    async fn key(&self, tenant: &str, flag: &str, value: &str) -> Result<String> {
        self.key_of("private", tenant, flag, value).await
    }

    async fn key_of(&self, kind: &str, tenant: &str, flag: &str, value: &str) -> Result<String> {
        let output = self
            .vault(&[
                "app", "create", "--tenant", tenant, "--name", value, "--type", kind, flag, value,
            ])
            .await?;
        let app = created_id(&output, "application")?.to_owned();
        let output = self
            .vault(&["key", "create", "--tenant", tenant, "--app", &app])
            .await?;
        Ok(output
            .lines()
            .next()
            .context("no key was created")?
            .to_owned())
    }

    /// Runs `cloakroom doctor`, which must report no findings.
    pub(crate) async fn run_doctor(&self) -> Result<()> {
        let output = self.vault(&["doctor"]).await?;
        let findings: Vec<&str> = output.lines().filter(|line| is_finding(line)).collect();
        ensure!(
            findings.is_empty(),
            "cloakroom doctor reports findings in the reference deployment:\n{}",
            findings.join("\n")
        );
        Ok(())
    }
}

/// Retries while the database is unreachable, when the command had no effect: HAProxy first has to find the primary,
/// which can take time on a busy machine.
async fn retry_while_unreachable(command: impl Fn() -> Command) -> Result<String> {
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

fn is_finding(line: &str) -> bool {
    let mark = line.split_whitespace().next();
    matches!(mark, Some("warn" | "BAD"))
}

/// The id in the line `<what> <id>`.
fn created_id<'a>(output: &'a str, what: &str) -> Result<&'a str> {
    output
        .lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
        .with_context(|| format!("no {what} was created:\n{output}"))
}

/// The default rate limits, raised so that they reject no request.
pub(crate) fn high_limits(shipped: &Path) -> Result<String> {
    let text = std::fs::read_to_string(shipped)
        .with_context(|| format!("the rate limits, {}", shipped.display()))?;
    let raised = text.lines().map(|line| match line.split_once(" = ") {
        Some(("requests", _)) => "requests = 100000\n".to_owned(),
        Some(("window", _)) => "window = \"1s\"\n".to_owned(),
        _ => format!("{line}\n"),
    });
    Ok(raised.collect())
}
