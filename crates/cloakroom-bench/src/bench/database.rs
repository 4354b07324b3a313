//! A database of the scratch server, queried with psql.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use cloakroom_scratch::Postgres;
use tokio::process::Command;

use super::command::capture;

const HOST: &str = "127.0.0.1";

/// Settings that must be on during measurements.
const DURABILITY: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// Tables into which a create inserts rows.
const TABLES: [&str; 3] = ["token", "term", "log"];

pub(super) struct Database {
    programs: PathBuf,
    variables: [(&'static str, String); 5],
}

/// Properties of the vault's rows, so that the baseline stores the same.
pub(super) struct Shape {
    pub(super) tenant: String,
    pub(super) container: String,
    pub(super) kind: String,
    pub(super) created_by: String,
    pub(super) path: String,
    pub(super) sealed_bytes: usize,
}

impl Database {
    pub(super) fn of(postgres: &Postgres, name: &str) -> Result<Self> {
        // The folder of the server contains psql and pgbench of the same version.
        let server = std::fs::read_link(format!("/proc/{}/exe", postgres.pid()))
            .context("finding PostgreSQL's programs")?;
        let programs = server.parent().context("a program has a folder")?.into();
        let url = postgres.url();
        let (user, password) = credentials(&url).context("the server's address has no password")?;
        let variables = [
            ("PGHOST", HOST.to_owned()),
            ("PGPORT", postgres.port().to_string()),
            ("PGDATABASE", name.to_owned()),
            ("PGUSER", user.to_owned()),
            ("PGPASSWORD", password.to_owned()),
        ];
        Ok(Self {
            programs,
            variables,
        })
    }

    /// A program of PostgreSQL, connected to this database.
    pub(super) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(variables);
        command
    }

    /// Runs each statement by itself. Returns one line per row, with `|` between columns.
    pub(super) async fn query(&self, statements: &str) -> Result<String> {
        let mut psql = self.program("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set=ON_ERROR_STOP=1"]);
        for statement in statements.split(';').filter(|text| !text.trim().is_empty()) {
            psql.arg(format!("--command={statement}"));
        }
        Ok(capture(psql).await?.trim().to_owned())
    }

    pub(super) async fn require_durability(&self) -> Result<()> {
        let statements = DURABILITY.map(|setting| format!("show {setting}"));
        let values = self.query(&statements.join(";")).await?;
        let values: Vec<&str> = values.lines().collect();
        if values != DURABILITY.map(|_| "on") {
            bail!("{DURABILITY:?} are {values:?}: without durability the numbers mean nothing");
        }
        Ok(())
    }

    pub(super) async fn count(&self) -> Result<u64> {
        let text = self.query("select count(*) from token").await?;
        text.parse().with_context(|| format!("a count: {text}"))
    }

    /// Every measurement starts directly after a checkpoint.
    pub(super) async fn checkpoint(&self) -> Result<()> {
        self.query("checkpoint").await.map(drop)
    }

    /// Stores which rows exist before the measurements.
    pub(super) async fn store_newest_row(&self) -> Result<()> {
        self.query(
            "create schema bench;
             create table bench.newest as select max(created_at) as at from token",
        )
        .await?;
        self.rewrite().await
    }

    /// Deletes the rows created since then, and vacuums.
    pub(super) async fn delete_newer_rows(&self) -> Result<()> {
        let delete = TABLES.map(|table| {
            format!("delete from {table} where created_at > (select at from bench.newest)")
        });
        self.query(&delete.join(";")).await?;
        self.rewrite().await
    }

    async fn rewrite(&self) -> Result<()> {
        let tables = TABLES.join(", ");
        self.query(&format!("vacuum (full, analyze) {tables}"))
            .await
            .map(drop)
    }

    pub(super) async fn shape(&self) -> Result<Shape> {
        let text = self
            .query(
                "select tenant_id, container_id, kind, created_by, path, round(avg(length(sealed)))
                 from token
                 group by 1, 2, 3, 4, 5",
            )
            .await?;
        let columns: Vec<&str> = text.split('|').collect();
        let [tenant, container, kind, created_by, path, sealed_bytes] = columns[..] else {
            bail!("the tokens are not all alike: {text}");
        };
        Ok(Shape {
            tenant: tenant.to_owned(),
            container: container.to_owned(),
            kind: kind.to_owned(),
            created_by: created_by.to_owned(),
            path: path.to_owned(),
            sealed_bytes: sealed_bytes.parse().with_context(|| text.clone())?,
        })
    }
}

/// User and password of `postgres://user:password@host:port/name`.
fn credentials(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let (credentials, _) = rest.rsplit_once('@')?;
    credentials.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_out_of_the_address() {
        let cases = [
            (
                "postgres://me:secret@127.0.0.1:5/db",
                Some(("me", "secret")),
            ),
            ("postgres://me@127.0.0.1:5/db", None),
            ("127.0.0.1", None),
        ];
        for (url, expected) in cases {
            assert_eq!(credentials(url), expected, "{url}");
        }
    }
}
