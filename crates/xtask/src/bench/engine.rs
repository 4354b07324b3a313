//! The bare engine: the node's own statements, driven by pgbench.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::command::capture;
use super::database::{Database, Shape};

/// The rows are those that the node writes for a card, in one statement as there: a token and the term
/// of its fingerprint. pgbench cannot make ids of its own and cannot send nulls, so those are part of
/// the statement.
const INSERT: &str = "\
with fresh as (
    insert into token
        (tenant_id, token_id, alias, container_id, kind, expires_at,
         expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
         fingerprint_expression, search_indexes, terms, path, security_code_until)
    select :tenant, gen_random_uuid(), null, :container, :kind, null,
           null, :created_by, :sealed, null, null, sha256(chance::bytea),
           null, null, array[substr(sha256(chance::bytea), 1, 16)], '/pci/high/', null
    from (select random()::text as chance) as made
    where null::timestamptz is null
       or null::timestamptz > now()
    returning created_at, token_id, terms
), termed as (
    insert into term (tenant_id, term, path, created_at, token_id)
    select :tenant, unnest(terms), '/pci/high/', created_at, token_id
    from fresh
)
select created_at
from fresh;
";

const FIND: &str = "\
\\set n random(1, :rows)
select token.token_id, token.alias, token.row_version, token.container_id, token.kind,
       token.expires_at, token.expires_offset_minutes, token.created_at, token.created_by,
       token.modified_at, token.modified_by, token.sealed, token.mask, token.metadata,
       token.fingerprint, token.fingerprint_expression, token.search_indexes, token.terms,
       coalesce(token.security_code_until > now(), false)
from token
where tenant_id = :tenant
  and token_id = md5(:n::text)::uuid
  and (expires_at is null or expires_at > now());
";

#[derive(Clone, Copy)]
pub(super) enum Statement {
    Insert,
    Find,
}

impl Statement {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Find => "select",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Insert => INSERT,
            Self::Find => FIND,
        }
    }
}

pub(super) struct Engine {
    pub(super) database: Database,
    shape: Shape,
    rows: u64,
    folder: PathBuf,
}

impl Engine {
    /// Fills the migrated but empty `database` with `rows` rows of this shape.
    pub(super) async fn new(
        database: Database,
        shape: Shape,
        rows: u64,
        folder: &Path,
    ) -> Result<Self> {
        let engine = Self {
            database,
            shape,
            rows,
            folder: folder.to_owned(),
        };
        let Shape {
            tenant,
            container,
            kind,
            created_by,
            ..
        } = &engine.shape;
        let sealed = engine.sealed();
        engine
            .database
            .ask(&format!(
                "insert into token (tenant_id, token_id, container_id, kind, created_by, sealed,
                                    fingerprint, terms, path)
                 select {tenant}, md5(n::text)::uuid, {container}, {kind}, '{created_by}', '{sealed}',
                        sha256(n::text::bytea), array[substr(sha256(n::text::bytea), 1, 16)],
                        '/pci/high/'
                 from generate_series(1, {rows}) n;
                 insert into term (tenant_id, term, path, created_at, token_id)
                 select tenant_id, terms[1], '/pci/high/', created_at, token_id from token"
            ))
            .await?;
        engine.database.remember_newest_row().await?;
        for statement in [Statement::Insert, Statement::Find] {
            std::fs::write(engine.script_file(statement), statement.script())?;
        }
        Ok(engine)
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "{} rows in the vault and as many in the engine, {} sealed bytes each",
            self.rows, self.shape.sealed_bytes
        )
    }

    /// Statements per second, each a transaction of its own.
    pub(super) async fn rate(
        &self,
        statement: Statement,
        clients: u32,
        seconds: u32,
    ) -> Result<f64> {
        let define = |name, value: &str| format!("--define={name}={value}");
        let mut pgbench = self.database.program("pgbench");
        pgbench
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
            .arg(format!("--client={clients}"))
            .arg(format!("--time={seconds}"))
            .arg(define("tenant", &self.shape.tenant))
            .arg(define("container", &self.shape.container))
            .arg(define("kind", &self.shape.kind))
            .arg(define("created_by", &self.shape.created_by))
            .arg(define("sealed", &self.sealed()))
            .arg(define("rows", &self.rows.to_string()))
            .arg("--file")
            .arg(self.script_file(statement));
        parse(&capture(pgbench).await?)
    }

    fn sealed(&self) -> String {
        format!("\\x{}", "a7".repeat(self.shape.sealed_bytes))
    }

    fn script_file(&self, statement: Statement) -> PathBuf {
        self.folder.join(statement.name()).with_extension("sql")
    }
}

/// The rate in pgbench's report, provided that nothing failed.
fn parse(report: &str) -> Result<f64> {
    let after = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
    let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
    if let Some(failed) = after("number of failed transactions: ").and_then(first_word) {
        ensure!(failed == "0", "{failed} transactions failed:\n{report}");
    }
    after("tps = ")
        .and_then(first_word)
        .and_then(|rate| rate.parse().ok())
        .with_context(|| format!("pgbench tells no rate:\n{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: select.sql
number of clients: 16
number of transactions actually processed: 40110
number of failed transactions: 0 (0.000%)
latency average = 0.797 ms
initial connection time = 41.200 ms
tps = 20063.211 (without initial connection time)
";

    #[test]
    fn the_rate_is_read_and_failures_are_refused() {
        let failing = REPORT.replace("transactions: 0 (0.000%)", "transactions: 3 (0.007%)");
        let cases = [
            (REPORT, Some(20063.211)),
            (failing.as_str(), None),
            ("pgbench (15.14)\n", None),
            ("tps = many\n", None),
        ];
        for (report, expected) in cases {
            assert_eq!(parse(report).ok(), expected, "{report}");
        }
    }

    #[test]
    fn the_columns_are_those_of_the_node() {
        let store = crate::workspace::root().join("crates/cloakroom/src/tokens/store");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let theirs = |file| words(&std::fs::read_to_string(store.join(file)).unwrap());

        let parts = [
            ("write.rs", INSERT, "(tenant_id", ")"),
            ("write.rs", INSERT, "insert into term", "select"),
            ("mod.rs", FIND, "token.token_id", "from"),
        ];
        for (file, script, start, end) in parts {
            let from = script.find(start).unwrap();
            let length = script[from..].find(end).unwrap();
            let columns = words(&script[from..from + length]);
            assert!(theirs(file).contains(&columns), "{columns}");
        }
    }
}
