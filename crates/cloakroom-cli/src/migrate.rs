//! `cloakroom migrate`: migrates the database schema.

use anyhow::{Context as _, bail};
use clap::Args;
use cloakroom::config::{Config, Environment};
use cloakroom::storage;
use serde_json::{Value, json};

use crate::output::print_result;

#[derive(Args)]
pub(crate) struct MigrateArguments {
    /// Also grant this role read and write access to the tables, so that nodes need not own them
    #[arg(long, value_name = "ROLE")]
    grant_to: Option<String>,
}

pub(crate) async fn run(config: &Config, arguments: MigrateArguments) -> anyhow::Result<()> {
    let connection = storage::connect_once(&config.database).await?;
    let applied = storage::migrate(&connection).await?;
    let mut lines: Vec<String> = applied
        .iter()
        .map(|migration| format!("applied {:04} {}", migration.number, migration.name))
        .collect();
    if applied.is_empty() {
        lines.push("nothing to do: the database is up to date".to_owned());
    }
    storage::set_log_retention(&connection, config.audit.keep_days)
        .await
        .context("cannot set the retention of the audit log")?;
    if let Some(role) = &arguments.grant_to {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if role.is_empty() || !role.chars().all(is_plain) {
            bail!("--grant-to must be lower-case letters, digits and `_`");
        }
        storage::grant(&connection, role)
            .await
            .context("cannot grant access to the role")?;
        lines.push(format!("{role} may read and write the tables"));
    }
    let kind = match config.vault.environment {
        Environment::Production => "production",
        Environment::Test => "test",
    };
    lines.push(format!(
        "next: `cloakroom tenant create --name NAME --type {kind}`"
    ));
    let applied: Vec<Value> = applied
        .iter()
        .map(|migration| json!({"number": migration.number, "name": migration.name}))
        .collect();
    let object = json!({"applied": applied, "granted_to": arguments.grant_to});
    print_result(&object, &lines);
    Ok(())
}
