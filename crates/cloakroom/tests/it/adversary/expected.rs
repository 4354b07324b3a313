//! The expected outcome of every attack, from `docs/trust/adversary.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::rows::Table;

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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust/adversary.toml");
        toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
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
