//! The baseline: the node's own statements in PostgreSQL alone, run by pgbench.

mod latencies;
mod same_rows;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tokio::process::Command;

pub(super) use self::latencies::Latencies;
use self::latencies::Log;
pub(super) use self::same_rows::require_same_rows;
use super::command::capture;
use super::database::{Database, Shape};

/// Inserts the rows that the node inserts for a card, also in one statement: a token, the term of its fingerprint and the
/// audit log entry. pgbench cannot generate ids or send nulls, so those are part of the statement. `same_rows` compares
/// the rows with the node's.
const INSERT: &str = "\
with fresh as (
    insert into token
        (tenant_id, token_id, alias, kind, container_id, path, expires_at,
         expires_offset_minutes, sealed, mask, metadata, fingerprint,
         fingerprint_expression, search_indexes, terms, security_code_until, created_by,
         created_at)
    select :tenant, gen_random_uuid(), null, :kind, :container, :path, null,
           null, :sealed, null, null, sha256(chance::bytea),
           null, null, array[substr(sha256(chance::bytea), 1, 16)], null, :created_by,
           now()
    from (select random()::text as chance) as made
    where null::timestamptz is null
       or null::timestamptz > now()
    returning created_at, token_id, terms
), termed as (
    insert into term (tenant_id, term, path, created_at, token_id)
    select :tenant, unnest(terms), :path, created_at, token_id
    from fresh
), logged as (
    insert into log
        (slot, created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id, operation,
         outcome, origin, trace_id, chain, seq, commit)
    select 0, created_at, :tenant, 1, :created_by, :created_by, 2, token_id, 1,
           1, '127.0.0.1', token_id, 1, :client_id, sha512(terms[1])
    from fresh
)
select created_at
from fresh;
";

const FIND: &str = "\
\\set n random(1, :rows)
select token.sealed, token.token_id, token.alias, token.row_version, token.container_id, token.path,
       token.kind, token.expires_at, token.expires_offset_minutes, token.created_at,
       token.created_by, token.modified_at, token.modified_by, token.mask, token.metadata,
       token.fingerprint, token.fingerprint_expression, token.search_indexes, token.terms,
       token.security_code_until
from token
where tenant_id = :tenant
  and token_id = md5(:n::text)::uuid
  and (expires_at is null or expires_at > now());
";

/// Timeout of connecting.
const SECONDS_MAX: u32 = 60;

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) enum Statement {
    #[serde(rename = "insert")]
    Insert,
    #[serde(rename = "select")]
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
            path,
            ..
        } = &engine.shape;
        let sealed = engine.sealed();
        engine
            .database
            .query(&format!(
                "insert into token (tenant_id, token_id, container_id, kind, created_by, created_at,
                                    sealed, fingerprint, terms, path)
                 select {tenant}, md5(n::text)::uuid, {container}, {kind}, '{created_by}',
                        now() - ({rows} - n) * interval '100 microseconds', '{sealed}',
                        sha256(n::text::bytea), array[substr(sha256(n::text::bytea), 1, 16)], '{path}'
                 from generate_series(1, {rows}) n;
                 insert into term (tenant_id, term, path, created_at, token_id)
                 select tenant_id, terms[1], path, created_at, token_id from token;
                 insert into log
                 select 0, created_at, tenant_id, 1, created_by, created_by, 2, token_id, 1,
                        1, '127.0.0.1', token_id, 1, 1, sha512(terms[1])
                 from token"
            ))
            .await?;
        engine.database.store_newest_row().await?;
        for statement in [Statement::Insert, Statement::Find] {
            std::fs::write(engine.script_file(statement), statement.script())?;
        }
        Ok(engine)
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "{} tokens in the vault and as many in the engine, {} sealed bytes each",
            self.rows, self.shape.sealed_bytes
        )
    }

    /// Runs one statement for some seconds, each time as a transaction of its own. `expected` is the expected rate per
    /// second. pgbench's duration includes connecting: if password authentication takes all of it, the duration is
    /// doubled.
    pub(super) async fn run(
        &self,
        statement: Statement,
        clients: u32,
        seconds: u32,
        expected: f64,
    ) -> Result<(Rate, Latencies)> {
        let mut seconds = seconds;
        loop {
            let log = Log::of(&self.folder, expected * f64::from(seconds));
            let mut pgbench = self.pgbench(statement, clients);
            pgbench
                .arg(format!("--time={seconds}"))
                .args(log.arguments());
            let report = capture(pgbench).await?;
            if let Some(rate) = parse(&report)? {
                return Ok((rate, log.take()?));
            }
            seconds *= 2;
            ensure!(seconds <= SECONDS_MAX, "pgbench only connects:\n{report}");
        }
    }

    /// Connects as many clients and runs the statement once for each. Password authentication takes thousands of digests
    /// on both sides, more CPU time than the statements of a second, so its cost is measured and subtracted.
    pub(super) async fn connect(&self, statement: Statement, clients: u32) -> Result<()> {
        let mut pgbench = self.pgbench(statement, clients);
        pgbench.arg("--transactions=1");
        capture(pgbench).await.map(drop)
    }

    fn pgbench(&self, statement: Statement, clients: u32) -> Command {
        let define = |name, value: &str| format!("--define={name}={value}");
        let mut pgbench = self.database.program("pgbench");
        pgbench
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
            .arg(format!("--client={clients}"))
            .arg(define("tenant", &self.shape.tenant))
            .arg(define("container", &self.shape.container))
            .arg(define("kind", &self.shape.kind))
            .arg(define("created_by", &self.shape.created_by))
            .arg(define("path", &self.shape.path))
            .arg(define("sealed", &self.sealed()))
            .arg(define("rows", &self.rows.to_string()))
            .arg("--file")
            .arg(self.script_file(statement));
        pgbench
    }

    fn sealed(&self) -> String {
        format!("\\x{}", "a7".repeat(self.shape.sealed_bytes))
    }

    fn script_file(&self, statement: Statement) -> PathBuf {
        self.folder.join(statement.name()).with_extension("sql")
    }
}

/// Results of pgbench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) transactions: u64,
    pub(super) per_s: f64,
}

/// The rate in pgbench's report; an error if a transaction failed, `None` if there was none.
fn parse(report: &str) -> Result<Option<Rate>> {
    let after = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
    let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
    if let Some(failed) = after("number of failed transactions: ").and_then(first_word) {
        ensure!(failed == "0", "{failed} transactions failed:\n{report}");
    }
    let rate = || {
        let processed = after("number of transactions actually processed: ")?;
        let transactions = first_word(processed)?.parse().ok()?;
        if transactions == 0 {
            return Some(None);
        }
        Some(Some(Rate {
            transactions,
            per_s: first_word(after("tps = ")?)?.parse().ok()?,
        }))
    };
    rate().with_context(|| format!("pgbench reports no rate:\n{report}"))
}

#[cfg(test)]
mod tests;
