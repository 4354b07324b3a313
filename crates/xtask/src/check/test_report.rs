//! What cargo-nextest says about a run: the slowest tests, and those that passed only when repeated.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cloakroom_devtools::workspace;

const SLOWEST: usize = 20;

struct TestRun {
    /// Binary and test.
    name: String,
    seconds: f64,
    was_repeated: bool,
}

/// Removes the report of an earlier run.
pub(super) fn clear() {
    // It may not exist.
    let _ = fs::remove_file(file());
}

/// The report of the last run as text, or nothing without cargo-nextest.
pub(super) fn summary() -> Result<Option<String>> {
    let file = file();
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(Some(describe(parse(&text))))
}

/// Named in `.config/nextest.toml`. cargo-nextest keeps it below the workspace, wherever the target folder is.
fn file() -> PathBuf {
    workspace::root().join("target/nextest/default/junit.xml")
}

/// The report has one element per line.
fn parse(text: &str) -> Vec<TestRun> {
    let mut runs: Vec<TestRun> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(test) = line.strip_prefix("<testcase ") {
            let name = [attribute(test, "classname"), attribute(test, "name")];
            runs.push(TestRun {
                name: name.join(" "),
                seconds: attribute(test, "time").parse().unwrap_or_default(),
                was_repeated: false,
            });
        } else if line.starts_with("<flakyFailure") || line.starts_with("<rerunFailure") {
            // It belongs to the test in the lines before.
            let repeated = runs.last_mut();
            repeated.into_iter().for_each(|it| it.was_repeated = true);
        }
    }
    runs
}

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let mark = format!("{name}=\"");
    // A name can be the end of another one: `name` and `classname`.
    let found = element
        .match_indices(&mark)
        .find(|(at, _)| *at == 0 || element.as_bytes()[at - 1] == b' ');
    let value = found.map_or("", |(at, _)| &element[at + mark.len()..]);
    value.split('"').next().unwrap_or_default()
}

fn describe(mut runs: Vec<TestRun>) -> String {
    runs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut lines = vec![format!("the slowest of {} tests:", runs.len())];
    let row = |run: &TestRun| format!("{:8.1} s  {}", run.seconds, run.name);
    lines.extend(runs.iter().take(SLOWEST).map(row));
    let repeated: Vec<&TestRun> = runs.iter().filter(|run| run.was_repeated).collect();
    lines.push(format!("repeated: {}", repeated.len()));
    lines.extend(repeated.into_iter().map(row));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_and_repeated_tests_are_listed() {
        let text = r#"<testsuites name="run" tests="2">
    <testsuite name="cloakroom::it">
        <testcase name="tokens::a" classname="cloakroom::it" timestamp="2026-01-01T00:00:00Z" time="1.250">
        </testcase>
        <testcase name="tokens::b" classname="cloakroom::it" time="3.000">
            <flakyFailure timestamp="2026-01-01T00:00:00Z" time="0.1" message="x" type="test failure">
        </testcase>
"#;

        let summary = describe(parse(text));

        let lines: Vec<&str> = summary.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "the slowest of 2 tests:",
                "3.0 s  cloakroom::it tokens::b",
                "1.2 s  cloakroom::it tokens::a",
                "repeated: 1",
                "3.0 s  cloakroom::it tokens::b",
            ]
        );
    }
}
