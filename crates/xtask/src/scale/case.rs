//! What is tried: each statement with arguments that matter, and how much it may read.

use anyhow::{Context, Result};

use super::database::Database;
use super::shape::{
    CARD, COMMON_DATA, COMMON_FINGERPRINT, COMMON_METADATA, KINDS, LARGEST, RARE, TENANT, digest,
    term,
};
use super::source::database_name;

/// Tokens on a page, and one more that tells whether there is a next one.
pub(super) const SIZE: u64 = 20;
pub(super) const LIMIT: u64 = SIZE + 1;
pub(super) const DEEP: u64 = 1000;
const KINDS_COUNT: u64 = 9;

/// One statement with arguments.
pub(super) struct Case {
    pub(super) statement: &'static str,
    pub(super) name: &'static str,
    arguments: String,
    pub(super) limits: Limits,
}

/// What a plan may do.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// How many rows may come into a sort.
    pub(super) sorted_rows_max: u64,
    /// How many rows of the large tables may be read.
    pub(super) read_rows_max: u64,
}

/// A few rows, found by keys.
const FEW: Limits = limits(0, 4);
/// A walk down one index.
const WALK: Limits = limits(0, 2 * LIMIT);
/// One walk for each type, and their merge.
const WALKS: Limits = limits(KINDS_COUNT * LIMIT, KINDS_COUNT * LIMIT);
/// The older lists count and sort all they find.
const EVERYTHING: Limits = limits(u64::MAX, u64::MAX);

const fn limits(sorted_rows_max: u64, read_rows_max: u64) -> Limits {
    Limits {
        sorted_rows_max,
        read_rows_max,
    }
}

impl Case {
    pub(super) fn sql(&self) -> String {
        execute(self.statement, &self.arguments)
    }
}

pub(super) fn execute(statement: &str, arguments: &str) -> String {
    format!("execute {}({arguments})", database_name(statement))
}

/// Where a page starts: behind everything, or below a token.
#[derive(Clone)]
pub(super) struct Start {
    path: String,
    created_at: String,
    token_id: String,
}

impl Start {
    pub(super) fn top() -> Self {
        Self {
            path: "0".to_owned(),
            created_at: "1970-01-01T00:00:00Z".to_owned(),
            token_id: "00000000-0000-0000-0000-000000000000".to_owned(),
        }
    }

    /// Below the last row of the page before, among the rows of `from`.
    pub(super) async fn of_page(database: &Database, from: &str, page: u64) -> Result<Self> {
        let sql = format!(
            "select path, created_at, token_id
            from {from}
            order by path desc, created_at desc, token_id desc
            offset {}
            limit 1",
            (page - 1) * SIZE - 1
        );
        let row = database.ask(&sql).await?;
        let row = row.with_context(|| format!("{from} has no page {page}"))?;
        let [path, created_at, token_id] = &row[..] else {
            anyhow::bail!("three columns were asked for");
        };
        Ok(Self {
            path: path.clone(),
            created_at: created_at.clone(),
            token_id: token_id.clone(),
        })
    }

    /// The arguments that say so, below everything in `low`.
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

/// Every statement that is tried.
pub(super) async fn all(database: &Database) -> Result<Vec<Case>> {
    let mut cases = lists(database).await?;
    cases.extend(older_lists());
    cases.extend(single_tokens(database).await?);
    Ok(cases)
}

fn case(statement: &'static str, name: &'static str, limits: Limits, arguments: String) -> Case {
    Case {
        statement,
        name,
        arguments,
        limits,
    }
}

async fn lists(database: &Database) -> Result<Vec<Case>> {
    let top = Start::top();
    let deep = Start::of_page(database, "token", DEEP).await?;
    let deep_card = Start::of_page(database, &rows_of_kind(CARD), DEEP).await?;
    let deep_term = Start::of_page(database, &rows_of_term(COMMON_METADATA), DEEP).await?;
    let across = format!("(select * from token where path >= '{LARGEST}') one");
    let across = Start::of_page(database, &across, 2).await?;
    let across = Start {
        created_at: "1970-01-02T00:00:00Z".to_owned(),
        ..across
    };
    let kinds = "token_queries::of_kinds";
    let term = "token_queries::by_term";
    let rare_term = (1_u64 << 48) + 1;
    Ok(vec![
        case(kinds, "page 1", WALKS, of_kinds(KINDS, &top)),
        case(kinds, "page 1000", WALKS, of_kinds(KINDS, &deep)),
        case(
            kinds,
            "into the next container",
            WALKS,
            of_kinds(KINDS, &across),
        ),
        case(
            kinds,
            "one type, page 1",
            WALKS,
            of_kinds(&one_kind(CARD), &top),
        ),
        case(
            kinds,
            "one type, page 1000",
            WALKS,
            of_kinds(&one_kind(CARD), &deep_card),
        ),
        case(kinds, "a rare type", WALKS, of_kinds(&one_kind(RARE), &top)),
        case(kinds, "no such type", WALKS, of_kinds("'{7}'", &top)),
        case(
            term,
            "half of the tokens, page 1",
            WALK,
            by_term(COMMON_METADATA, None, &top),
        ),
        case(
            term,
            "page 1000",
            WALK,
            by_term(COMMON_METADATA, None, &deep_term),
        ),
        case(term, "one token", WALK, by_term(rare_term, None, &top)),
        case(
            term,
            "a shared fingerprint",
            WALK,
            by_term(COMMON_FINGERPRINT, Some(COMMON_FINGERPRINT), &top),
        ),
        case(
            term,
            "a shared index value",
            WALK,
            by_term(COMMON_DATA, None, &top),
        ),
        case(term, "nothing", WALK, by_term(9, None, &top)),
    ])
}

fn older_lists() -> Vec<Case> {
    let (all, some) = (
        "'{/}', '{0}'",
        "'{/merchants/,/zeta/}', '{/merchants0,/zeta0}'",
    );
    let (common, none) = (bytes(&term(COMMON_METADATA)), bytes(&term(9)));
    let terms = format!("array[{common}, {none}]::bytea[]");
    let offset = (DEEP - 1) * SIZE;
    let count = "token_queries::old_count";
    let page = "token_queries::old_page";
    let count_terms = "token_queries::old_count_by_terms";
    let page_terms = "token_queries::old_page_by_terms";
    let paged = |reach: &str, offset: u64| format!("{TENANT}, {reach}, {KINDS}, {offset}, {SIZE}");
    let termed = |reach: &str| format!("{TENANT}, {terms}, {reach}, 1");
    let termed_page = |offset: u64| format!("{}, {offset}, {SIZE}", termed(all));
    vec![
        case(
            count,
            "everything",
            EVERYTHING,
            format!("{TENANT}, {all}, {KINDS}"),
        ),
        case(
            count,
            "some containers",
            EVERYTHING,
            format!("{TENANT}, {some}, {KINDS}"),
        ),
        case(page, "page 1", EVERYTHING, paged(all, 0)),
        case(page, "page 1000", EVERYTHING, paged(all, offset)),
        case(page, "some containers", EVERYTHING, paged(some, 0)),
        case(count_terms, "half of the tokens", EVERYTHING, termed(all)),
        case(count_terms, "some containers", EVERYTHING, termed(some)),
        case(page_terms, "half of the tokens", EVERYTHING, termed_page(0)),
        case(page_terms, "page 1000", EVERYTHING, termed_page(offset)),
    ]
}

async fn single_tokens(database: &Database) -> Result<Vec<Case>> {
    let ids =
        "select string_agg(id, ',') from (select token_id::text as id from token limit 100) few";
    let hundred = database.ask(ids).await?.unwrap_or_default().concat();
    let sql =
        format!("select token_id, container_id, path from token where path = '{LARGEST}' limit 1");
    let row = database.ask(&sql).await?.unwrap_or_default();
    let [id, container, path] = &row[..] else {
        anyhow::bail!("there are no tokens");
    };
    let own = (1_u64 << 48) + 1;
    let equal = |of: u64| {
        let (term, print) = (bytes(&term(of)), bytes(&digest(of)));
        format!("{TENANT}, {term}, '{LARGEST}', '{id}', {print}")
    };
    let one = format!("{TENANT}, '{id}'");
    Ok(vec![
        case("tokens::find", "one token", FEW, one.clone()),
        case(
            "tokens::find_all",
            "a hundred tokens",
            limits(0, 100),
            format!("{TENANT}, '{{{hundred}}}'"),
        ),
        case(
            "tokens::find_many",
            "a hundred requests",
            limits(0, 100),
            format!("array_fill({TENANT}, array[100]), '{{{hundred}}}'"),
        ),
        case("tokens::find_place", "one token", FEW, one.clone()),
        case(
            "tokens::find_equal",
            "a shared fingerprint",
            FEW,
            equal(COMMON_FINGERPRINT),
        ),
        case("tokens::find_equal", "one token", FEW, equal(own)),
        case("tokens::find_expired", "one token", FEW, one.clone()),
        case("tokens::key_is_taken", "one token", FEW, one.clone()),
        case(
            "tokens::find_claimant",
            "one token",
            FEW,
            format!("{TENANT}, {}, 11", bytes(&digest(own))),
        ),
        case("tokens::sweep_one", "one token", FEW, one),
        case("tokens::sweep", "nothing is due", FEW, "1000".to_owned()),
        case(
            "tokens::delete",
            "one token",
            // The one that is gone is counted, before the record of it is written.
            limits(1, 8),
            // No records: they are rows of a table of their own, partitioned by day.
            format!("{TENANT}, '{id}', {container}, '{path}', '{{}}'"),
        ),
    ])
}
