//! SQL statements are in `store.rs` files, in `store/` folders of large modules, and in `storage/`.

use super::Violation;
use super::code::Code;
use super::tree::{File, Tree};

/// Developer tools, which have no store.
const TOOLS: [&str; 4] = [
    "crates/cloakroom-bench",
    "crates/xtask",
    "crates/cloakroom-faults",
    "crates/cloakroom-scratch",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust("crates")
        .filter(|file| !file.is_test() && !may_hold_sql(file))
        .flat_map(|file| {
            Code::read(&file.text)
                .strings
                .into_iter()
                .filter(|(_, text)| is_statement(text))
                .map(|(line, _)| Violation {
                    path: file.path.clone(),
                    line,
                    rule: "sql-place",
                    advice: "move the statement to the module's store.rs".to_owned(),
                })
        })
        .collect()
}

fn may_hold_sql(file: &File) -> bool {
    file.path.ends_with("store.rs")
        || file
            .path
            .iter()
            .any(|part| part == "storage" || part == "store")
        || TOOLS.iter().any(|tool| file.path.starts_with(tool))
}

fn is_statement(text: &str) -> bool {
    let bare: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("--"))
        .collect();
    let words = bare.join(" ").to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    match words.as_slice() {
        ["select", next, ..] => has("from") || next.contains('(') || next.parse::<i64>().is_ok(),
        ["insert", "into", ..] | ["delete", "from", ..] | ["truncate", _, ..] => true,
        ["update", _, "set", ..] => true,
        ["with", .., _] => {
            has("as") && (has("select") || words.iter().any(|w| w.starts_with("(select")))
        }
        ["create" | "alter" | "drop", kind, ..] => matches!(
            *kind,
            "table" | "index" | "unique" | "schema" | "database" | "role" | "view" | "type"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_distinguished_from_prose() {
        let cases = [
            ("-- tokens::find\n select id\n from token", true),
            ("SELECT 1", true),
            ("select now()", true),
            ("insert into token (id) values ($1)", true),
            ("update token set mask = $1", true),
            ("delete from token where id = $1", true),
            ("with old as (select id from token) delete from token", true),
            ("create table token ()", true),
            ("truncate token", true),
            ("truncate", false),
            ("select a container", false),
            ("update the token", false),
            ("no such token", false),
            ("with", false),
            ("create a token", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_statement(text), expected, "{text}");
        }
    }
}
