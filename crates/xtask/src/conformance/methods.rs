//! Every method of the official clients: what it asks for, and whether this vault answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Deserialize;

use crate::workspace;

const INTRODUCTION: &str = "\
# Methods of the official clients

Every method that the official clients have, found by reflection, the request that it makes, and how this
vault answers. `cargo xtask conformance` tries each of them, writes this page to `target/conformance`, and
fails when this copy differs. What is unsupported stands in `conformance/unsupported.json` and is answered
with 404 or 410 and a problem body.
";

/// What is not for this vault, and why; the suites read the same file.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Unsupported(Vec<Reason>);

#[derive(Deserialize)]
struct Reason {
    /// A method in the spelling of Python, or a part of the client with `.*` behind it.
    methods: String,
    reason: String,
}

/// What one client has, and what became of it.
pub(super) struct Methods {
    sdk: String,
    rows: Vec<Row>,
}

struct Row {
    method: String,
    request: String,
    outcome: Outcome,
}

enum Outcome {
    Answered(u16),
    Unsupported(String),
    Failed(&'static str),
}

/// A method that the client has, or, with a request, a call of one.
#[derive(Deserialize)]
struct Line {
    sdk: String,
    method: String,
    request: Option<String>,
    status: Option<u16>,
}

/// How often a request was answered with a status.
type Answers = BTreeMap<(u16, String), usize>;

impl Unsupported {
    pub(super) fn read() -> Result<Self> {
        let file = workspace::root().join("conformance/unsupported.json");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    }

    fn reason(&self, method: &str) -> Option<&str> {
        let method = snake_case(method);
        let reason = self.0.iter().find(|reason| reason.is_about(&method))?;
        Some(&reason.reason)
    }

    /// Entries that are about no method of any client, and so say nothing.
    pub(super) fn idle(&self, clients: &[&Methods]) -> Vec<String> {
        let all: Vec<String> = clients
            .iter()
            .flat_map(|client| &client.rows)
            .map(|row| snake_case(&row.method))
            .collect();
        let is_idle = |reason: &&Reason| !all.iter().any(|method| reason.is_about(method));
        let name = |reason: &Reason| reason.methods.clone();
        self.0.iter().filter(is_idle).map(name).collect()
    }
}

impl Reason {
    fn is_about(&self, method: &str) -> bool {
        match self.methods.strip_suffix('*') {
            Some(part) => method.starts_with(part),
            None => method == self.methods,
        }
    }
}

impl Methods {
    pub(super) fn read(file: &Path, unsupported: &Unsupported) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Self::parse(&text, unsupported).with_context(|| file.display().to_string())
    }

    fn parse(text: &str, unsupported: &Unsupported) -> Result<Self> {
        let mut sdk = String::new();
        let mut all = BTreeSet::new();
        let mut calls: BTreeMap<String, Answers> = BTreeMap::new();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line)?;
            sdk = line.sdk;
            match (line.request, line.status) {
                (Some(request), Some(status)) => {
                    let answers = calls.entry(line.method).or_default();
                    *answers.entry((status, request)).or_default() += 1;
                }
                _ => {
                    all.insert(line.method);
                }
            }
        }
        let row = |method: String| {
            let answers = calls.remove(&method).unwrap_or_default();
            let reason = unsupported.reason(&method);
            let (request, outcome) = concluded(&answers, reason);
            Row {
                method,
                request,
                outcome,
            }
        };
        let rows = all.into_iter().map(row).collect();
        Ok(Self { sdk, rows })
    }

    /// What is wrong with the methods, each in a sentence.
    pub(super) fn complaints(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return vec!["a suite told of no methods at all".to_owned()];
        }
        let complaint = |row: &Row| match row.outcome {
            Outcome::Failed(reason) => Some(format!("{} {}: {reason}", self.sdk, row.method)),
            Outcome::Answered(_) | Outcome::Unsupported(_) => None,
        };
        self.rows.iter().filter_map(complaint).collect()
    }
}

/// The request that a method makes, and whether what was expected of it happened.
fn concluded(answers: &Answers, reason: Option<&str>) -> (String, Outcome) {
    let usual = |is_meant: fn(u16) -> bool| {
        let meant = answers.iter().filter(|((status, _), _)| is_meant(*status));
        meant.max_by_key(|(_, count)| **count).map(|(key, _)| key)
    };
    let any = usual(|_| true).map(|(_, request)| request.clone());
    let request = any.unwrap_or_default();
    let success = usual(|status| (200..300).contains(&status));
    match (reason, success) {
        _ if answers.is_empty() => (request, Outcome::Failed("nobody tried it")),
        (None, Some((status, request))) => (request.clone(), Outcome::Answered(*status)),
        (None, None) => (request, Outcome::Failed("never succeeded")),
        (Some(_), Some(_)) => (request, Outcome::Failed("is unsupported, and succeeded")),
        (Some(reason), None) => match usual(|status| matches!(status, 404 | 410)) {
            Some((_, request)) => (request.clone(), Outcome::Unsupported(reason.to_owned())),
            None => (
                request,
                Outcome::Failed("was refused, but not as unsupported"),
            ),
        },
    }
}

pub(super) fn table(clients: &[&Methods]) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["SDK", "method", "request", "result"]);
    for client in clients {
        for row in &client.rows {
            let result = match &row.outcome {
                Outcome::Answered(status) => format!("ok {status}"),
                Outcome::Unsupported(reason) => format!("unsupported: {reason}"),
                Outcome::Failed(reason) => format!("FAILED: {reason}"),
            };
            table.add_row([&client.sdk, &row.method, &row.request, &result]);
        }
    }
    table
}

/// The same for people who look for a method in the documentation.
pub(super) fn page(clients: &[&Methods]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for client in clients {
        let _infallible = write!(page, "\n## {}\n\n| method", client.sdk);
        page.push_str(" | request | answer |\n| --- | --- | --- |\n");
        for row in &client.rows {
            let answer = match &row.outcome {
                Outcome::Answered(status) => status.to_string(),
                Outcome::Unsupported(reason) => format!("unsupported: {reason}"),
                Outcome::Failed(reason) => format!("FAILED: {reason}"),
            };
            let (method, request) = (&row.method, &row.request);
            let _infallible = writeln!(page, "| `{method}` | `{request}` | {answer} |");
        }
    }
    page
}

fn snake_case(method: &str) -> String {
    let mut name = String::with_capacity(method.len());
    for letter in method.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsupported() -> Unsupported {
        let text = r#"[{"methods":"networkless.*","reason":"no network"},
            {"methods":"web_hooks.get","reason":"not built yet"},
            {"methods":"nothing.*","reason":"?"}]"#;
        serde_json::from_str(text).unwrap()
    }

    fn methods(lines: &[(&str, &str, u16)]) -> Methods {
        let mut text = String::new();
        for (method, request, status) in lines {
            let line = if request.is_empty() {
                serde_json::json!({ "sdk": "node 1", "method": method })
            } else {
                serde_json::json!({ "sdk": "node 1", "method": method, "request": request, "status": status })
            };
            writeln!(text, "{line}").unwrap();
        }
        Methods::parse(&text, &unsupported()).unwrap()
    }

    #[test]
    fn each_method_has_a_row_and_says_how_it_went() {
        let methods = methods(&[
            ("tokens.get", "", 0),
            ("tokens.get", "GET /tokens/{id}", 404),
            ("tokens.get", "GET /tokens/{id}", 200),
            ("networkless.part.get", "", 0),
            ("networkless.part.get", "GET /part", 404),
            ("webHooks.get", "", 0),
            ("webHooks.get", "GET /hooks", 410),
        ]);

        let text = table(&[&methods]).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "SDK     method                request           result",
                "node 1  networkless.part.get  GET /part         unsupported: no network",
                "node 1  tokens.get            GET /tokens/{id}  ok 200",
                "node 1  webHooks.get          GET /hooks        unsupported: not built yet",
            ]
        );
        assert_eq!(methods.complaints(), [""; 0]);
        assert!(page(&[&methods]).contains("| `tokens.get` | `GET /tokens/{id}` | 200 |"));
        assert_eq!(unsupported().idle(&[&methods]), ["nothing.*"]);
    }

    #[test]
    fn what_is_not_as_it_is_said_to_be_is_a_complaint() {
        let methods = methods(&[
            ("a.forgotten", "", 0),
            ("b.refused", "", 0),
            ("b.refused", "GET /b", 404),
            ("networkless.works", "", 0),
            ("networkless.works", "GET /c", 404),
            ("networkless.works", "GET /c", 200),
            ("networkless.forbidden", "", 0),
            ("networkless.forbidden", "GET /d", 403),
        ]);

        assert_eq!(
            methods.complaints(),
            [
                "node 1 a.forgotten: nobody tried it",
                "node 1 b.refused: never succeeded",
                "node 1 networkless.forbidden: was refused, but not as unsupported",
                "node 1 networkless.works: is unsupported, and succeeded",
            ]
        );
    }
}
