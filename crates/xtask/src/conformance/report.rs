//! Results of the suites: one JSON line per attempt.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Deserialize;

const LONGEST_WHY: usize = 400;

pub(super) struct Report {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    sdk: String,
    method: String,
    tried: String,
    result: Outcome,
    /// The message of the client or the suite about a failure.
    #[serde(default)]
    why: String,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
enum Outcome {
    #[serde(rename = "ok")]
    Well,
    /// Expected to fail: the vault does not implement it yet.
    #[serde(rename = "not yet")]
    Waiting,
    #[serde(rename = "FAILED")]
    Failed,
}

impl Report {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    /// Groups rows by method: files of a suite may run concurrently.
    fn parse(text: &str) -> Result<Self> {
        let rows: serde_json::Result<Vec<Row>> = text.lines().map(serde_json::from_str).collect();
        let mut rows = rows?;
        rows.sort_by(|a, b| a.method.cmp(&b.method));
        Ok(Self { rows })
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn failed(&self) -> usize {
        self.count_of(Outcome::Failed)
    }

    pub(super) fn waiting(&self) -> usize {
        self.count_of(Outcome::Waiting)
    }

    /// One line per failure, printed after the long tables.
    pub(super) fn failures(&self) -> impl Iterator<Item = String> {
        self.rows_of(Outcome::Failed).map(|row| {
            let why: Vec<&str> = row.why.split_whitespace().collect();
            let why: String = why.join(" ").chars().take(LONGEST_WHY).collect();
            format!("{}: {}, {}: {why}", row.sdk, row.method, row.tried)
        })
    }

    fn count_of(&self, outcome: Outcome) -> usize {
        self.rows_of(outcome).count()
    }

    fn rows_of(&self, outcome: Outcome) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.result == outcome)
    }
}

pub(super) fn table<'a>(reports: impl Iterator<Item = &'a Report>) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(["SDK", "method", "tried", "result"]);
    for row in reports.flat_map(|report| &report.rows) {
        let result = match row.result {
            Outcome::Well => "ok",
            Outcome::Waiting => "not yet",
            Outcome::Failed => "FAILED",
        };
        table.add_row([&row.sdk, &row.method, &row.tried, result]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"sdk":"node 1","method":"tokens.get","tried":"a","result":"ok"}
{"sdk":"node 1","method":"tokens.create","tried":"b","result":"FAILED","why":"2 is\n  not 1"}
{"sdk":"node 1","method":"tokens.create","tried":"a","result":"not yet"}
"#;

    #[test]
    fn rows_are_counted_and_shown_by_method() {
        let report = Report::parse(LINES).unwrap();

        let counts = (report.count(), report.failed(), report.waiting());
        assert_eq!(counts, (3, 1, 1));
        let text = table([&report].into_iter()).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "SDK     method         tried  result",
                "node 1  tokens.create  b      FAILED",
                "node 1  tokens.create  a      not yet",
                "node 1  tokens.get     a      ok",
            ]
        );
        let failures: Vec<String> = report.failures().collect();
        assert_eq!(failures, ["node 1: tokens.create, b: 2 is not 1"]);
    }

    #[test]
    fn an_unknown_result_is_an_error() {
        assert!(Report::parse(&LINES.replace("FAILED", "skipped")).is_err());
        assert!(Report::parse("").is_ok_and(|report| report.count() == 0));
    }
}
