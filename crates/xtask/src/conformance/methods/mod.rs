//! Every method of the official clients: the request it sends, and whether this vault supports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cloakroom_devtools::workspace;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Deserialize;

const INTRODUCTION: &str = "\
# Methods of the official clients

Every method that the official clients have, found by reflection, the request that it makes, and how this
vault answers. `cargo xtask conformance` tries each of them, writes this page to `target/conformance`, and
fails when this copy differs. Unsupported methods are listed with reasons in `conformance/unsupported.json`; their requests
get 404, 410 or 501 with a problem body.
";

/// Methods that this vault does not support, and the reasons. The suites read the same file.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Unsupported(Vec<Reason>);

#[derive(Deserialize)]
struct Reason {
    /// A method as spelled in Python, or a part of the client followed by `.*`.
    methods: String,
    reason: String,
}

/// The methods of one client and their outcomes.
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

/// A method of the client or, with a request, a call of one.
#[derive(Deserialize)]
struct Line {
    sdk: String,
    method: String,
    request: Option<String>,
    status: Option<u16>,
}

/// How often a request returned a status.
type Responses = BTreeMap<(u16, String), usize>;

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

    /// Entries that match no method of any client.
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
        let mut calls: BTreeMap<String, Responses> = BTreeMap::new();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line)?;
            sdk = line.sdk;
            match (line.request, line.status) {
                (Some(request), Some(status)) => {
                    let responses = calls.entry(line.method).or_default();
                    *responses.entry((status, request)).or_default() += 1;
                }
                _ => {
                    all.insert(line.method);
                }
            }
        }
        let row = |method: String| {
            let responses = calls.remove(&method).unwrap_or_default();
            let reason = unsupported.reason(&method);
            let (request, outcome) = evaluate(&responses, reason);
            Row {
                method,
                request,
                outcome,
            }
        };
        let rows = all.into_iter().map(row).collect();
        Ok(Self { sdk, rows })
    }

    /// The failed methods, one message each.
    pub(super) fn failures(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return vec!["a suite reported no methods".to_owned()];
        }
        let complaint = |row: &Row| match row.outcome {
            Outcome::Failed(reason) => Some(format!("{} {}: {reason}", self.sdk, row.method)),
            Outcome::Answered(_) | Outcome::Unsupported(_) => None,
        };
        self.rows.iter().filter_map(complaint).collect()
    }
}

/// The request that a method sends, and whether its outcome is as expected.
fn evaluate(responses: &Responses, reason: Option<&str>) -> (String, Outcome) {
    let usual = |is_meant: fn(u16) -> bool| {
        let meant = responses
            .iter()
            .filter(|((status, _), _)| is_meant(*status));
        meant.max_by_key(|(_, count)| **count).map(|(key, _)| key)
    };
    let any = usual(|_| true).map(|(_, request)| request.clone());
    let request = any.unwrap_or_default();
    let success = usual(|status| (200..300).contains(&status));
    match (reason, success) {
        _ if responses.is_empty() => (request, Outcome::Failed("not called by the suite")),
        (None, Some((status, request))) => (request.clone(), Outcome::Answered(*status)),
        (None, None) => (request, Outcome::Failed("never succeeded")),
        (Some(_), Some(_)) => (request, Outcome::Failed("is unsupported, and succeeded")),
        (Some(reason), None) => match usual(|status| matches!(status, 404 | 410 | 501)) {
            Some((_, request)) => (request.clone(), Outcome::Unsupported(reason.to_owned())),
            None => (request, Outcome::Failed("rejected, but not as unsupported")),
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

/// The same table as a page of the documentation.
pub(super) fn page(clients: &[&Methods]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for client in clients {
        let _infallible = write!(page, "\n## {}\n\n| method", client.sdk);
        page.push_str(" | request | answer |\n| --- | --- | --- |\n");
        for row in &client.rows {
            let result = match &row.outcome {
                Outcome::Answered(status) => status.to_string(),
                Outcome::Unsupported(reason) => format!("unsupported: {reason}"),
                Outcome::Failed(reason) => format!("FAILED: {reason}"),
            };
            let (method, request) = (&row.method, &row.request);
            let _infallible = writeln!(page, "| `{method}` | `{request}` | {result} |");
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
mod tests;
