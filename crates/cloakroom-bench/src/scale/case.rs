//! A statement with arguments, and how much it may read.

use anyhow::{Context, Result};

use super::database::Database;
use super::prepared::prepared_name;
use super::shape::{TENANT, digest, term};

/// Tokens on a page, and one more to detect a next page.
pub(super) const SIZE: u64 = 20;
pub(super) const LIMIT: u64 = SIZE + 1;
pub(super) const DEEP: u64 = 1000;

/// One statement with arguments.
pub(super) struct Case {
    pub(super) statement: &'static str,
    pub(super) name: &'static str,
    pub(super) arguments: String,
    pub(super) limits: Limits,
}

/// Limits of a plan.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of rows in a sort.
    pub(super) sorted_rows_max: u64,
    /// Maximum number of rows read from the large tables.
    pub(super) read_rows_max: u64,
}

impl Limits {
    pub(super) const fn new(sorted_rows_max: u64, read_rows_max: u64) -> Self {
        Self {
            sorted_rows_max,
            read_rows_max,
        }
    }
}

impl Case {
    pub(super) fn sql(&self) -> String {
        execute(self.statement, &self.arguments)
    }
}

pub(super) fn execute(statement: &str, arguments: &str) -> String {
    format!("execute {}({arguments})", prepared_name(statement))
}

/// Start of a page: the first page, or after a token.
#[derive(Clone)]
pub(super) struct Start {
    pub(super) path: String,
    pub(super) created_at: String,
    pub(super) token_id: String,
}

impl Start {
    pub(super) fn top() -> Self {
        Self {
            path: "0".to_owned(),
            created_at: "1970-01-01T00:00:00Z".to_owned(),
            token_id: "00000000-0000-0000-0000-000000000000".to_owned(),
        }
    }

    /// After the last row of the previous page, among the rows of `from`.
    pub(super) async fn of_page(database: &Database, from: &str, page: u64) -> Result<Self> {
        let sql = format!(
            "select path, created_at, token_id
            from {from}
            order by path desc, created_at desc, token_id desc
            offset {}
            limit 1",
            (page - 1) * SIZE - 1
        );
        let row = database.first_row(&sql).await?;
        let row = row.with_context(|| format!("{from} has no page {page}"))?;
        let [path, created_at, token_id] = &row[..] else {
            anyhow::bail!("expected three columns");
        };
        Ok(Self {
            path: path.clone(),
            created_at: created_at.clone(),
            token_id: token_id.clone(),
        })
    }

    /// The arguments of a statement, with `low` as the lower bound of paths.
    fn arguments(&self, low: &str) -> String {
        let Self {
            path,
            created_at,
            token_id,
        } = self;
        format!("'{low}', '{path}', '{created_at}', '{token_id}'")
    }
}

pub(super) fn of_kinds(kinds: &str, start: &Start) -> String {
    format!("{TENANT}, {kinds}, {}, {LIMIT}", start.arguments("/"))
}

pub(super) fn by_term(of: u64, fingerprint: Option<u64>, start: &Start) -> String {
    let fingerprint = fingerprint.map_or("null".to_owned(), |of| bytes(&digest(of)));
    let term = bytes(&term(of));
    let start = start.arguments("/");
    format!("{TENANT}, {term}, {start}, {fingerprint}, {LIMIT}")
}

pub(super) fn by_any_term(of: &[u64], start: &Start) -> String {
    let terms: Vec<String> = of.iter().map(|of| bytes(&term(*of))).collect();
    let (terms, start) = (terms.join(", "), start.arguments("/"));
    format!("{TENANT}, array[{terms}]::bytea[], {start}, {LIMIT}")
}

pub(super) fn bytes(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("'\\x{hex}'")
}

pub(super) fn one_kind(kind: i16) -> String {
    format!("'{{{kind}}}'")
}

/// The rows of a list of one type, or with one term.
pub(super) fn rows_of_kind(kind: i16) -> String {
    format!("(select * from token where tenant_id = {TENANT} and kind = {kind}) one")
}

pub(super) fn rows_of_term(of: u64) -> String {
    let term = bytes(&term(of));
    format!("(select * from term where tenant_id = {TENANT} and term = {term}) one")
}
