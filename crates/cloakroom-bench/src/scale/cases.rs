//! The cases: each statement with representative arguments.

use anyhow::Result;

use super::case::{
    Case, DEEP, LIMIT, Limits, SIZE, Start, by_any_term, by_term, bytes, of_kinds, one_kind,
    rows_of_kind, rows_of_term,
};
use super::database::Database;
use super::shape::{
    CARD, COMMON_DATA, COMMON_FINGERPRINT, COMMON_METADATA, KINDS, LARGEST, RARE, TENANT, digest,
    term,
};

const KINDS_COUNT: u64 = 9;

/// A few rows by key.
const FEW: Limits = Limits::new(0, 4);
/// One index scan.
const WALK: Limits = Limits::new(0, 2 * LIMIT);
/// One index scan per type, merged.
const WALKS: Limits = Limits::new(KINDS_COUNT * LIMIT, KINDS_COUNT * LIMIT);
/// The deprecated lists count and sort all results.
const EVERYTHING: Limits = Limits::new(u64::MAX, u64::MAX);

/// All cases.
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
        any_term(&top),
    ])
}

fn any_term(start: &Start) -> Case {
    let terms = by_any_term(&[COMMON_DATA, 9], start);
    let name = "a shared index value and nothing";
    case("token_queries::by_any_term", name, WALKS, terms)
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
    let hundred = database.first_row(ids).await?.unwrap_or_default().concat();
    let sql =
        format!("select token_id, container_id, path from token where path = '{LARGEST}' limit 1");
    let row = database.first_row(&sql).await?.unwrap_or_default();
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
            Limits::new(0, 100),
            format!("{TENANT}, '{{{hundred}}}'"),
        ),
        case(
            "tokens::find_many",
            "a hundred requests",
            Limits::new(0, 100),
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
        equal_to_any(id, own),
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
            "tokens::sweep_reserved_ids",
            "nothing is due",
            FEW,
            "1000, 3600".to_owned(),
        ),
        case(
            "tokens::delete",
            "one token",
            // The deleted token is counted before its audit log entry is inserted.
            Limits::new(1, 8),
            // Without audit log entries: they are in a table of their own, partitioned by day. Without a response
            // and an event.
            format!("{TENANT}, '{id}', {container}, '{path}', '{{}}', '{{}}', '{{}}'"),
        ),
    ])
}

/// Sorts the tokens with the value. Runs only while a fingerprint key is replaced.
fn equal_to_any(id: &str, value: u64) -> Case {
    let (term, digest) = (bytes(&term(value)), bytes(&digest(value)));
    case(
        "tokens::find_equal_to_any",
        "one token",
        Limits::new(1, 4),
        format!("{TENANT}, array[{term}::bytea], '{LARGEST}', '{id}', array[{digest}::bytea]"),
    )
}
