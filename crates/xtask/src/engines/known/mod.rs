//! Known properties of the engines, from `engines.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::feature::{
    ALLOWED_FUNCTION, FEATURES, RULED_OUT, SCHEMA_FEATURES, features, functions, plain,
};

const FILE: &str = "docs/operate/engines.toml";

/// Modules whose tables are distributed over shards. `engines.toml` lists the shards of their statements.
const SPREAD: [&str; 7] = [
    "audit::",
    "idempotency::",
    "reports::",
    "security_codes::",
    "token_intents::",
    "token_queries::",
    "tokens::",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    #[serde(rename = "engine")]
    pub(super) engines: Vec<Engine>,
    /// By feature, then by key of the engine.
    #[serde(rename = "feature")]
    pub(super) features: BTreeMap<String, BTreeMap<String, String>>,
    /// The same for features of tables.
    #[serde(rename = "schema")]
    pub(super) schema: BTreeMap<String, BTreeMap<String, String>>,
    /// Functions that all engines have.
    functions: BTreeSet<String>,
    /// The shards on which a statement runs.
    #[serde(rename = "place")]
    pub(super) places: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Engine {
    pub(super) key: String,
    pub(super) name: String,
    /// Tables that are not distributed are plain PostgreSQL on one node.
    #[serde(default)]
    keeps_tables_whole: bool,
    pub(super) sources: Vec<String>,
}

/// Support of a feature by an engine, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Accepts,
    Limits,
    /// Not documented.
    Unknown,
    Refuses,
}

impl Verdict {
    pub(super) fn of(text: &str) -> Option<Self> {
        match text.split(':').next()? {
            "yes" => Some(Self::Accepts),
            "limited" => Some(Self::Limits),
            "unknown" => Some(Self::Unknown),
            "no" => Some(Self::Refuses),
            _ => None,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Accepts => "yes",
            Self::Limits => "limited",
            Self::Unknown => "unknown",
            Self::Refuses => "no",
        }
    }
}

impl Known {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
        toml::from_str(&text).context(FILE)
    }

    /// The worst support among these features.
    fn verdict(&self, engine: &Engine, features: &[&str]) -> Verdict {
        let verdict = |feature: &&str| Verdict::of(self.features.get(*feature)?.get(&engine.key)?);
        let verdicts = features
            .iter()
            .map(|feature| verdict(feature).unwrap_or(Verdict::Unknown));
        verdicts.max().unwrap_or(Verdict::Accepts)
    }

    /// Support of a statement by an engine.
    pub(super) fn verdict_of(&self, engine: &Engine, name: &str, sql: &str) -> Verdict {
        if engine.keeps_tables_whole && !self.is_spread(name) {
            return Verdict::Accepts;
        }
        self.verdict(engine, &features(&plain(sql)))
    }

    /// Whether a statement uses distributed tables.
    pub(super) fn is_spread(&self, statement: &str) -> bool {
        let is_distributed = SPREAD.iter().any(|module| statement.starts_with(module));
        is_distributed || self.places.contains_key(statement)
    }

    /// Statements and entries of `engines.toml` that must be fixed before the table can be generated.
    pub(super) fn errors(&self, statements: &[(&str, &str)], migrations: &[String]) -> Vec<String> {
        let mut found = self.missing_entries();
        for (name, text) in statements {
            let text = plain(text);
            found.extend(ruled_out(name, &text));
            for function in functions(&text) {
                let is_feature = self.features.contains_key(&format!("`{function}`"));
                if !is_feature && !self.functions.contains(function) {
                    found.push(format!(
                        "{name} calls {function}: look up which engines support it, then add it to {FILE}"
                    ));
                }
            }
        }
        for migration in migrations {
            let first = migration.lines().next().unwrap_or_default();
            found.extend(ruled_out(first, &plain(migration)));
        }
        let names: BTreeSet<&str> = statements.iter().map(|(name, _)| *name).collect();
        let must_say = names.iter().filter(|name| self.is_spread(name));
        let silent = must_say.filter(|name| !self.places.contains_key(**name));
        found.extend(
            silent.map(|name| {
                format!("{name} has no place in {FILE}: add the shards on which it runs")
            }),
        );
        let gone = self
            .places
            .keys()
            .filter(|name| !names.contains(name.as_str()));
        found.extend(gone.map(|name| format!("{FILE} places {name}, which does not exist")));
        found
    }

    /// Missing and superfluous entries of features.
    fn missing_entries(&self) -> Vec<String> {
        let read = FEATURES.iter().map(|(name, _)| *name);
        let of_tables = SCHEMA_FEATURES.iter().map(|(name, _)| *name);
        let mut found = self.mismatches(&self.features, read.collect());
        found.extend(self.mismatches(&self.schema, of_tables.collect()));
        found
    }

    fn mismatches(
        &self,
        entries: &BTreeMap<String, BTreeMap<String, String>>,
        names: Vec<&str>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for name in &names {
            for engine in &self.engines {
                let entry = entries.get(*name).and_then(|entry| entry.get(&engine.key));
                if entry.and_then(|entry| Verdict::of(entry)).is_none() {
                    found.push(format!("{FILE} has no entry of {} for {name}", engine.name));
                }
            }
        }
        let unknown = entries
            .keys()
            .filter(|name| !names.contains(&name.as_str()));
        found.extend(
            unknown.map(|name| format!("{FILE} lists {name}, which is not a known feature")),
        );
        found
    }
}

fn ruled_out(name: &str, text: &str) -> Vec<String> {
    let text = text.replace(ALLOWED_FUNCTION, "");
    let found = RULED_OUT.iter().filter(|word| text.contains(**word));
    found
        .map(|word| format!("{name} has `{}`, which is ruled out", word.trim()))
        .collect()
}

#[cfg(test)]
mod tests;
