//! Statements and migrations of the service.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{process, workspace};

/// Every statement of the service by its name, and its migrations in order.
#[derive(Deserialize)]
pub struct ServiceSql {
    pub migrations: Vec<String>,
    statements: BTreeMap<String, String>,
}

impl ServiceSql {
    /// Builds and runs the example `statements` of the service. Depending on the service instead would keep developer
    /// tasks from running while the service does not compile.
    pub fn load() -> Result<Self> {
        let mut cargo = workspace::cargo();
        // With the features that the whole workspace enables, so that no dependency is compiled twice.
        cargo.args(["build", "--quiet", "--locked", "--workspace"]);
        cargo.args(["--example", "statements"]);
        process::run_successfully(cargo)?;
        let program = workspace::built("examples/statements")?;
        let output = Command::new(program)
            .stderr(Stdio::inherit())
            .output()
            .context("running the example `statements`")?;
        ensure!(
            output.status.success(),
            "the example `statements` failed: {}",
            output.status
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Names and texts of all statements.
    pub fn statements(&self) -> impl Iterator<Item = (&str, &str)> {
        self.statements
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The text of one statement.
    pub fn statement(&self, name: &str) -> Result<&str> {
        let text = self.statements.get(name).map(String::as_str);
        text.with_context(|| format!("the service has no statement {name}"))
    }
}
