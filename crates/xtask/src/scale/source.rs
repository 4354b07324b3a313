//! The statements and migrations of the service, as the service itself tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::case::Case;
use super::database::Database;
use crate::{process, workspace};

/// The rooms whose statements are tried.
const ROOMS: [&str; 2] = ["token_queries::", "tokens::"];
/// They name whole primary keys and have more parameters than there are plans to choose from.
const UNTRIED: [&str; 3] = ["tokens::insert", "tokens::insert_many", "tokens::update"];

#[derive(Deserialize)]
pub(crate) struct Source {
    pub(crate) migrations: Vec<String>,
    statements: BTreeMap<String, String>,
}

impl Source {
    /// Asks the library's example of that name: this program does not depend on the service, so that
    /// it runs when the service does not build.
    pub(crate) fn ask() -> Result<Self> {
        let mut cargo = workspace::cargo();
        // With the features that the whole workspace gives its libraries, so that nothing is compiled twice.
        cargo.args(["build", "--quiet", "--locked", "--workspace"]);
        cargo.args(["--example", "statements"]);
        process::run_well(cargo)?;
        let program = workspace::built("examples/statements")?;
        let output = Command::new(program)
            .stderr(Stdio::inherit())
            .output()
            .context("asking for the statements")?;
        ensure!(
            output.status.success(),
            "the statements are not told: {}",
            output.status
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    pub(super) async fn prepare_all(&self, database: &Database) -> Result<()> {
        for (name, text) in self.tried() {
            let sql = format!("prepare {} as {text}", database_name(name));
            database.run(&sql).await.with_context(|| name.clone())?;
        }
        Ok(())
    }

    /// Fails when a statement of the rooms has no case, so that a new one is not forgotten.
    pub(super) fn require_all_tried(&self, cases: &[Case]) -> Result<()> {
        let tried: BTreeSet<&str> = cases.iter().map(|case| case.statement).collect();
        let missing: Vec<&str> = self
            .tried()
            .map(|(name, _)| name.as_str())
            .filter(|name| !tried.contains(name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        bail!(
            "no case for {}: add one to scale/case.rs",
            missing.join(", ")
        )
    }

    /// Every statement of the service: its name and its text.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.statements
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The text of one statement.
    pub(super) fn text(&self, name: &str) -> Result<&str> {
        let text = self.statements.get(name).map(String::as_str);
        text.with_context(|| format!("the service has no statement {name}"))
    }

    fn tried(&self) -> impl Iterator<Item = (&String, &String)> {
        self.statements.iter().filter(|(name, _)| {
            ROOMS.iter().any(|room| name.starts_with(room)) && !UNTRIED.contains(&name.as_str())
        })
    }
}

/// What a statement is called in the database.
pub(super) fn database_name(statement: &str) -> String {
    statement.replace("::", "_")
}
