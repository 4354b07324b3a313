//! The bare engine: the node's own statements, driven by pgbench.

mod latencies;
mod same_rows;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tokio::process::Command;

pub(super) use self::latencies::Latencies;
pub(super) use self::same_rows::require_same_rows;

use self::latencies::Log;
use super::command::capture;
use super::database::{Database, Shape};

/// The rows are those that the node writes for a card, in one statement as there: a token, the term
/// of its fingerprint and the record of it. pgbench cannot make ids of its own and cannot send nulls, so
/// those are part of the statement. What each row must look like is compared with the node's, in `same_rows`.
const INSERT: &str = "\
with fresh as (
    insert into token
        (tenant_id, token_id, alias, container_id, kind, expires_at,
         expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
         fingerprint_expression, search_indexes, terms, path, security_code_until,
         created_at)
    select :tenant, gen_random_uuid(), null, :container, :kind, null,
           null, :created_by, :sealed, null, null, sha256(chance::bytea),
           null, null, array[substr(sha256(chance::bytea), 1, 16)], :path, null,
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
         outcome, origin, trace_id, chain, seq, mac)
    select 0, created_at, :tenant, 1, :created_by, :created_by, 2, token_id, 1,
           1, '127.0.0.1', token_id, 1, :client_id, terms[1]
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

/// Whatever does not connect in this time will not.
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
            .ask(&format!(
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
                        1, '127.0.0.1', token_id, 1, 1, terms[1]
                 from token"
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
            "{} tokens in the vault and as many in the engine, {} sealed bytes each",
            self.rows, self.shape.sealed_bytes
        )
    }

    /// Runs one statement for some seconds, each time as a transaction of its own. `expected` is how many a
    /// second there may be. pgbench counts its seconds from before it connects: when proving the passwords leaves
    /// nothing of them, it gets twice as many.
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

    /// Connects as many clients and runs the statement once for each. Proving a password takes both sides
    /// thousands of digests: more than the statements of a second, so it has to be told from them.
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

/// What pgbench saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) transactions: u64,
    pub(super) per_s: f64,
}

/// The rate in pgbench's report, provided that nothing failed. There is none when there was no transaction.
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
    rate().with_context(|| format!("pgbench tells no rate:\n{report}"))
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
        let only_connected = "number of transactions actually processed: 0\n";
        let cases = [
            (REPORT, Some(Some((40110, 20063.211)))),
            (only_connected, Some(None)),
            (failing.as_str(), None),
            ("pgbench (15.14)\n", None),
            ("tps = many\n", None),
        ];
        for (report, expected) in cases {
            let rate = parse(report)
                .ok()
                .map(|rate| rate.map(|rate| (rate.transactions, rate.per_s)));
            assert_eq!(rate, expected, "{report}");
        }
    }

    #[test]
    fn the_columns_are_those_of_the_node() {
        let store = crate::workspace::root().join("crates/cloakroom/src/token_rows/store");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let theirs = |file| {
            let text = words(&std::fs::read_to_string(store.join(file)).unwrap());
            // The one column that a shared statement takes otherwise.
            text.replace("\", $sealed, \"", "token.sealed")
        };

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

    /// The node writes whole rows of `log`.
    #[test]
    fn a_record_has_every_column() {
        let file = crate::workspace::root().join("migrations/0006_log.sql");
        let migration = std::fs::read_to_string(file).unwrap();
        let (_, table) = migration.split_once("create table log (").unwrap();
        let (table, _) = table.split_once("\n)").unwrap();
        let theirs = table
            .lines()
            .filter_map(|line| line.split_whitespace().next());

        let (_, columns) = INSERT.split_once("insert into log").unwrap();
        let (columns, _) = columns.split_once(')').unwrap();
        let ours = columns.split(['(', ',']).map(str::trim).skip(1);

        assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>());
    }
}
