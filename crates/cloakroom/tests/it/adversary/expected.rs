//! The expected outcome of every attack, from `docs/trust/adversary.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::rows::Table;

const ATTACKS: [&str; 7] = [
    "edit", "clear", "swap", "restore", "delete", "insert", "reorder",
];

const INTRODUCTION: &str = "# What an attacker with write access to the database achieves

<!-- Written by the test adversary::record. -->

A test acts as a database administrator, or as an attacker with the stolen role of the service, on a vault in use. For every table
and column, it edits, clears or swaps values, restores rows from before a change or a deletion, and deletes, inserts and reorders
rows. Then it sends requests to the running node and to a node that starts afterwards, and runs the checks of `audit verify`
and `doctor`.

- **rejected**: the node rejects the row or the request, does not start, or the schema does not allow the change.
- **detected**: `cloakroom audit verify` or `cloakroom doctor` names the row or its bucket the next time it runs.
- **harmless**: neither; the reason is below. Every other outcome fails the test `adversary::nothing_unlisted_passes`.

Numbers count columns; the worst outcome of several tries counts.

| table | edit | clear | swap | restore | delete | insert | reorder |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

fn document(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust");
    folder.join(name)
}

/// What became of an attack, from bad to good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// Responses change, and nothing names the row.
    Effective,
    /// Nothing changes, and nothing names the row.
    Unnoticed,
    /// A verification names the row.
    Detected,
    /// The vault rejects the row, or the schema does not allow it.
    Rejected,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Effective => "effective",
            Self::Unnoticed => "unnoticed",
            Self::Detected => "detected",
            Self::Rejected => "rejected",
        })
    }
}

/// The worst acceptable outcome of each attack: all are detected or rejected unless they are listed.
#[derive(Deserialize)]
pub(super) struct Expectations {
    harmless: Vec<Harmless>,
    /// Tables that have no row in the scene.
    #[serde(default)]
    empty: BTreeMap<String, String>,
}

/// Attacks that may pass, and why.
#[derive(Deserialize)]
struct Harmless {
    table: String,
    /// Columns, or `*` for whole rows.
    columns: Vec<String>,
    attacks: Vec<String>,
    reason: String,
}

/// The worst outcome of each attack, and the responses that it changed.
pub(super) type Outcomes = BTreeMap<(String, String), (Outcome, Vec<String>)>;

impl Expectations {
    pub(super) fn load() -> Self {
        let text = std::fs::read_to_string(document("adversary.toml")).unwrap();
        toml::from_str(&text).unwrap()
    }

    /// Fails with every listed column that does not exist: its reason would excuse nothing.
    pub(super) fn check_columns(&self, tables: &[Table]) {
        let mut missing = Vec::new();
        for it in &self.harmless {
            let table = tables.iter().find(|table| table.name == it.table);
            let has = |name: &String| table.is_some_and(|table| table.has_column(name));
            let names = it.columns.iter().filter(|name| *name != "*" && !has(name));
            missing.extend(names.map(|name| format!("{}.{name}", it.table)));
        }
        assert!(missing.is_empty(), "listed, but not there: {missing:?}");
    }

    /// Writes the table of all attacks.
    pub(super) fn record(&self, tables: &[Table], outcomes: &Outcomes) {
        let mut page = INTRODUCTION.to_owned();
        for table in tables {
            write!(page, "| `{}` |", table.name).unwrap();
            for attack in ATTACKS {
                write!(page, " {} |", self.summarize(&table.name, attack, outcomes)).unwrap();
            }
            page.push('\n');
        }
        page.push_str(
            "\n## Harmless\n\n| table | columns | attacks | reason |\n| --- | --- | --- | --- |\n",
        );
        for it in &self.harmless {
            let columns = it.columns.join(", ").replace('*', "whole rows");
            let (table, attacks, reason) = (&it.table, it.attacks.join(", "), &it.reason);
            writeln!(page, "| `{table}` | {columns} | {attacks} | {reason} |").unwrap();
        }
        page.push_str("\n## Not attacked\n\n| table | reason |\n| --- | --- |\n");
        for (table, reason) in &self.empty {
            writeln!(page, "| `{table}` | {reason} |").unwrap();
        }
        std::fs::write(document("adversary.md"), page).unwrap();
    }

    /// How many columns or rows of a table had which outcome.
    fn summarize(&self, table: &str, attack: &str, outcomes: &Outcomes) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for ((place, tried), (outcome, _)) in outcomes {
            if tried == attack && place.split('.').next() == Some(table) {
                let name = match outcome {
                    Outcome::Rejected => "rejected",
                    Outcome::Detected => "detected",
                    _ => "harmless",
                };
                *counts.entry(name).or_default() += 1;
            }
        }
        match counts.len() {
            0 => "-".to_owned(),
            1 => counts.into_keys().collect(),
            _ => {
                let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
                counts.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn is_harmless(&self, place: &str, attack: &str) -> bool {
        let (table, column) = place.split_once('.').unwrap_or((place, "*"));
        self.harmless.iter().any(|it| {
            it.table == table
                && it.columns.iter().any(|name| name == column)
                && it.attacks.iter().any(|name| name == attack)
                && !it.reason.is_empty()
        })
    }

    /// Fails with every attack that passed without being listed, and every table without rows.
    pub(super) fn compare(
        &self,
        tables: &[Table],
        outcomes: &Outcomes,
        (part, parts): (usize, usize),
    ) {
        let attacked: BTreeSet<&str> = outcomes
            .keys()
            .map(|(place, _)| place.split('.').next().unwrap())
            .collect();
        let mut failures = String::new();
        for table in tables.iter().skip(part).step_by(parts) {
            let name = table.name.as_str();
            if !attacked.contains(name) && !self.empty.contains_key(name) {
                writeln!(failures, "{name}: no row in the scene").unwrap();
            }
        }
        for ((place, attack), (outcome, changed)) in outcomes {
            println!("{place} {attack} {outcome}");
            if *outcome < Outcome::Detected && !self.is_harmless(place, attack) {
                writeln!(failures, "{place}: {attack} is {outcome} {changed:?}").unwrap();
            }
        }
        assert!(failures.is_empty(), "unlisted attacks pass:\n{failures}");
    }
}
