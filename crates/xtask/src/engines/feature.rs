//! Finds features in statements in which engines differ.

use std::collections::BTreeSet;

/// Features of statements by their names in `engines.toml`, and how to recognize them.
type Reader = fn(&str) -> bool;

pub(super) const FEATURES: [(&str, Reader); 15] = [
    ("write inside `with`", writes_inside_with),
    ("one table written twice", writes_a_table_twice),
    ("`for update` of one key", |text| locks(text, false)),
    ("`for update` of several rows", |text| locks(text, true)),
    ("`skip locked`", |text| text.contains("skip locked")),
    ("`lateral`", |text| text.contains(" lateral ")),
    ("rows as `text[]::table[]`", |text| {
        text.contains("::text[]::")
    }),
    ("`on conflict`", |text| text.contains("on conflict")),
    ("join in a write", joins_in_a_write),
    ("join of tables that are spread differently", |text| {
        let joins = |table| text.contains(&format!(" from {table} join token on "));
        joins("term") || joins("claim")
    }),
    ("row comparison", |text| {
        [") < (", ") > ("].iter().any(|sign| text.contains(sign))
    }),
    ("`select` without columns", |text| {
        text.contains("select from ") || text.contains("(select)")
    }),
    ("`with recursive`", |text| text.contains("with recursive")),
    ("`make_interval`", |text| text.contains("make_interval(")),
    ("`set_config`", |text| text.contains("set_config(")),
];

/// Features of tables, recognized in migrations.
pub(super) const SCHEMA_FEATURES: [(&str, &str); 8] = [
    ("partitions", "partition by"),
    ("`collate \"C\"`", "collate \"c\""),
    ("array column", "bytea[]"),
    ("partial index", ") where "),
    ("`do` block", "do $$"),
    ("`security definer` function", "security definer"),
    ("`set storage`", "set storage"),
    ("`check` constraint", " check ("),
];

/// The only function of the schema: it removes old days of the audit log with the rights of the owner.
pub(super) const ALLOWED_FUNCTION: &str = "create function drop_log_days(";

/// Forbidden in statements and migrations, for any engine.
pub(super) const RULED_OUT: [&str; 20] = [
    "pg_advisory",
    "listen ",
    "pg_notify",
    "nextval(",
    "create sequence",
    "serial primary",
    "bigserial",
    "serializable",
    "lock table",
    "create trigger",
    "create function",
    "create procedure",
    "references ",
    "foreign key",
    "tablesample",
    "for share",
    "savepoint",
    "detach partition",
    " ctid",
    "create temp",
];

/// Removes comments, converts to lower case, and collapses white space.
pub(super) fn plain(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default());
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").to_lowercase()
}

/// The features of a normalized statement.
pub(super) fn features(text: &str) -> Vec<&'static str> {
    let has = FEATURES.iter().filter(|(_, is_there)| is_there(text));
    has.map(|(name, _)| *name).collect()
}

/// Names of functions: names directly before a parenthesis.
pub(super) fn functions(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices('(')
        .filter_map(|(at, _)| {
            let before = &text[..at];
            let start = before.rfind(|c| !is_name(c)).map_or(0, |last| last + 1);
            let name = &before[start..];
            (!name.is_empty() && !WORDS.contains(&name)).then_some(name)
        })
        .collect()
}

/// Keywords that may be directly before a parenthesis.
const WORDS: [&str; 5] = ["any", "exists", "in", "values", "all"];

fn writes_inside_with(text: &str) -> bool {
    ["insert into", "update", "delete from"]
        .iter()
        .any(|write| {
            text.contains(&format!(" as ({write} ")) || text.contains(&format!(" as ( {write} "))
        })
}

fn written_tables(text: &str) -> Vec<&str> {
    let mut tables = Vec::new();
    for write in ["insert into ", "delete from "] {
        for (at, _) in text.match_indices(write) {
            tables.extend(text[at + write.len()..].split(' ').next());
        }
    }
    for (at, _) in text.match_indices("update ") {
        let mut words = text[at + "update ".len()..].split(' ');
        if let (Some(table), Some("set")) = (words.next(), words.next()) {
            tables.push(table);
        }
    }
    tables
}

fn writes_a_table_twice(text: &str) -> bool {
    let tables = written_tables(text);
    tables.iter().collect::<BTreeSet<_>>().len() < tables.len()
}

/// Whether rows are locked: several at once, or the one row of a key.
fn locks(text: &str, several: bool) -> bool {
    text.match_indices("for update").any(|(at, _)| {
        let start = text[..at].rfind("select ").unwrap_or(0);
        let selection = &text[start..at];
        let finds_several = [" limit ", "any(", " order by "]
            .iter()
            .any(|sign| selection.contains(sign));
        finds_several == several
    })
}

fn joins_in_a_write(text: &str) -> bool {
    let deletes = text.match_indices("delete from ").any(|(at, write)| {
        let mut words = text[at + write.len()..].split(' ');
        words.nth(1) == Some("using")
    });
    deletes
        || text.match_indices(" set ").any(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(" where ").unwrap_or(rest.len());
            rest[..end].contains(" from ")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_recognized_in_statements() {
        let cases: [(&str, &[&str]); 10] = [
            ("-- a::b\nselect 1\n from token where token_id = $1", &[]),
            (
                "with gone as (\n delete from token where token_id = $1 returning 1) select 1 from gone",
                &["write inside `with`"],
            ),
            (
                "with a as (delete from claim where x = $1), b as (insert into claim values ($1)) select 1",
                &["write inside `with`", "one table written twice"],
            ),
            (
                "select 1 from reply where scope = $1 for update",
                &["`for update` of one key"],
            ),
            (
                "select 1 from reply order by until limit $1 for update skip locked",
                &["`for update` of several rows", "`skip locked`"],
            ),
            (
                "insert into log select entry.* from unnest($1::text[]::log[]) as entry",
                &["rows as `text[]::table[]`"],
            ),
            (
                "delete from reply using due where reply.scope = due.scope",
                &["join in a write"],
            ),
            (
                "update token set sealed = again.sealed from again where token_id = again.token_id",
                &["join in a write"],
            ),
            (
                "select 1 from log where (created_at, seq) < ($1, $2)",
                &["row comparison"],
            ),
            (
                "select 1 where exists (select from log)",
                &["`select` without columns"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(features(&plain(text)), expected, "{text}");
        }
    }

    #[test]
    fn functions_are_names_before_a_parenthesis() {
        let text = plain(
            "select Count(*), coalesce(max(a), 0) from t where b = any($1) and c in (1) -- now()",
        );

        let found: Vec<&str> = functions(&text).into_iter().collect();

        assert_eq!(found, ["coalesce", "count", "max"]);
    }
}
