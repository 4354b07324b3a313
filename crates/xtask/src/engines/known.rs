//! What is known about the engines, as `engines.toml` says it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::feature::{FEATURES, RULED_OUT, SCHEMA_FEATURES, features, functions, plain};

const FILE: &str = "docs/operate/engines.toml";

/// The rooms whose tables are spread over shards. Their statements must say where they run.
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
    /// By the feature's name, then by the engine's key.
    #[serde(rename = "feature")]
    pub(super) features: BTreeMap<String, BTreeMap<String, String>>,
    /// The same for features of tables.
    #[serde(rename = "schema")]
    pub(super) schema: BTreeMap<String, BTreeMap<String, String>>,
    /// Functions that all of them have.
    functions: BTreeSet<String>,
    /// Where a statement runs.
    #[serde(rename = "place")]
    pub(super) places: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Engine {
    pub(super) key: String,
    pub(super) name: String,
    /// Tables that are not spread are plain PostgreSQL on one node.
    #[serde(default)]
    keeps_tables_whole: bool,
    pub(super) sources: Vec<String>,
}

/// What an engine makes of something, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Accepts,
    Limits,
    /// Its documentation does not say.
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

    /// The worst that an engine says to any of these features.
    fn verdict(&self, engine: &Engine, features: &[&str]) -> Verdict {
        let said = |feature: &&str| Verdict::of(self.features.get(*feature)?.get(&engine.key)?);
        let said = features
            .iter()
            .map(|feature| said(feature).unwrap_or(Verdict::Unknown));
        said.max().unwrap_or(Verdict::Accepts)
    }

    /// What an engine makes of a statement.
    pub(super) fn verdict_of(&self, engine: &Engine, (name, sql): (&str, &str)) -> Verdict {
        if engine.keeps_tables_whole && !self.is_spread(name) {
            return Verdict::Accepts;
        }
        self.verdict(engine, &features(&plain(sql)))
    }

    /// Whether a statement asks for tables that are spread.
    pub(super) fn is_spread(&self, statement: &str) -> bool {
        let is_of_room = SPREAD.iter().any(|room| statement.starts_with(room));
        is_of_room || self.places.contains_key(statement)
    }

    /// What has to be looked up, changed or taken out before the table can be made.
    pub(super) fn complaints(
        &self,
        statements: &[(&str, &str)],
        migrations: &[String],
    ) -> Vec<String> {
        let mut found = self.missing_answers();
        for (name, text) in statements {
            let text = plain(text);
            found.extend(ruled_out(name, &text));
            for function in functions(&text) {
                let is_feature = self.features.contains_key(&format!("`{function}`"));
                if !is_feature && !self.functions.contains(function) {
                    found.push(format!(
                        "{name} calls {function}: look up which engines have it, then add it to {FILE}"
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
            silent.map(|name| format!("{name} has no place in {FILE}: which shards does it ask?")),
        );
        let gone = self
            .places
            .keys()
            .filter(|name| !names.contains(name.as_str()));
        found.extend(gone.map(|name| format!("{FILE} places {name}, which does not exist")));
        found
    }

    /// Every feature has an answer of every engine, and nothing else is answered.
    fn missing_answers(&self) -> Vec<String> {
        let read = FEATURES.iter().map(|(name, _)| *name);
        let of_tables = SCHEMA_FEATURES.iter().map(|(name, _)| *name);
        let mut found = self.unanswered(&self.features, read.collect());
        found.extend(self.unanswered(&self.schema, of_tables.collect()));
        found
    }

    fn unanswered(
        &self,
        answers: &BTreeMap<String, BTreeMap<String, String>>,
        names: Vec<&str>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for name in &names {
            for engine in &self.engines {
                let said = answers.get(*name).and_then(|said| said.get(&engine.key));
                if said.and_then(|said| Verdict::of(said)).is_none() {
                    found.push(format!(
                        "{FILE} does not say what {} makes of {name}",
                        engine.name
                    ));
                }
            }
        }
        let unknown = answers
            .keys()
            .filter(|name| !names.contains(&name.as_str()));
        found
            .extend(unknown.map(|name| format!("{FILE} speaks of {name}, which nobody looks for")));
        found
    }
}

fn ruled_out(name: &str, text: &str) -> Vec<String> {
    let found = RULED_OUT.iter().filter(|word| text.contains(**word));
    found
        .map(|word| format!("{name} has `{}`, which is ruled out", word.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(places: &str) -> Known {
        let mut text = String::from(
            "functions = [\"now\"]\n[[engine]]\nkey = \"one\"\nname = \"One\"\nsources = []\n",
        );
        for (name, _) in FEATURES {
            let says = if name.contains("skip") {
                "no: never"
            } else {
                "yes"
            };
            text.push_str(&format!("[feature.{name:?}]\none = {says:?}\n"));
        }
        for (name, _) in SCHEMA_FEATURES {
            text.push_str(&format!("[schema.{name:?}]\none = \"yes\"\n"));
        }
        text.push_str(&format!("[place]\n{places}"));
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn what_nobody_looked_up_is_complained_about() {
        let known = known("\"tokens::find\" = \"one\"\n");
        let complain = |name: &str, text: &str| {
            let both = [("tokens::find", "select now()"), (name, text)];
            known.complaints(&both, &[])
        };

        assert!(complain("tenants::find", "select now()").is_empty());
        let told = complain("tenants::find", "select pg_sleep($1)");
        assert!(
            told[0].starts_with("tenants::find calls pg_sleep:"),
            "{told:?}"
        );
        let told = complain("tokens::new", "select now()");
        assert!(told[0].starts_with("tokens::new has no place"), "{told:?}");
        let told = complain("tenants::find", "select nextval($1)");
        assert!(told[0].ends_with("ruled out"), "{told:?}");
        let told = known.complaints(
            &[("tokens::find", "select 1")],
            &["create trigger x".to_owned()],
        );
        assert_eq!(
            told,
            ["create trigger x has `create trigger`, which is ruled out"]
        );
        let told = known.complaints(&[], &[]);
        assert!(
            told[0].contains("places tokens::find, which does not exist"),
            "{told:?}"
        );
    }

    #[test]
    fn the_worst_answer_counts() {
        let known = known("");
        let engine = &known.engines[0];

        assert_eq!(known.verdict(engine, &[]), Verdict::Accepts);
        assert_eq!(
            known.verdict(engine, &["`lateral`", "`skip locked`"]),
            Verdict::Refuses
        );
        assert_eq!(known.verdict(engine, &["something else"]), Verdict::Unknown);
        let sweep = |name| known.verdict_of(engine, (name, "select 1 for update skip locked"));
        assert_eq!(sweep("sessions::sweep"), Verdict::Refuses);
        let engine = &Engine {
            keeps_tables_whole: true,
            key: "one".to_owned(),
            name: String::new(),
            sources: Vec::new(),
        };
        let sweep = |name| known.verdict_of(engine, (name, "select 1 for update skip locked"));
        assert_eq!(sweep("sessions::sweep"), Verdict::Accepts);
        assert_eq!(sweep("tokens::sweep"), Verdict::Refuses);
    }

    /// The file in the repository answers for every feature that is looked for.
    #[test]
    fn every_engine_answers_for_every_feature() {
        let known = Known::read(&crate::workspace::root()).unwrap();

        assert_eq!(known.missing_answers(), Vec::<String>::new());
        assert!(
            known
                .engines
                .iter()
                .all(|engine| !engine.sources.is_empty())
        );
    }
}
