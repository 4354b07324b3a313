//! The table of steps: what each took, and why the others did not run.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use cloakroom_devtools::workspace;

use super::usage::Usage;

/// The page with the recorded tables.
const PAGE: &str = "CONTRIBUTING.md";

#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    usage: Usage,
    result: Outcome,
}

#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Passed at this commit, with the same files.
    Unchanged(String),
    NotRun,
}

impl Report {
    pub(super) fn add(&mut self, name: &'static str, usage: Usage, result: Outcome) {
        self.rows.push(Row {
            name,
            usage,
            result,
        });
    }

    pub(super) fn text(&self) -> String {
        let heads = ["step", "seconds", "cpu", "stolen", "result"];
        let lines = std::iter::once(heads.map(str::to_owned)).chain(self.cells());
        let align = |[name, seconds, cpu, stolen, result]: [String; 5]| {
            let line = format!("{name:12} {seconds:>8} {cpu:>8} {stolen:>7}  {result}");
            line.trim_end().to_owned()
        };
        lines.map(align).collect::<Vec<_>>().join("\n")
    }

    /// A row per step and one for the sum.
    fn cells(&self) -> impl Iterator<Item = [String; 5]> {
        let sum = self.rows.iter().fold(Usage::default(), |sum, row| Usage {
            elapsed: sum.elapsed + row.usage.elapsed,
            cpu_seconds: sum.cpu_seconds + row.usage.cpu_seconds,
            stolen_seconds: sum.stolen_seconds + row.usage.stolen_seconds,
        });
        let rows = self.rows.iter().map(|row| {
            let has_run = matches!(row.result, Outcome::Passed | Outcome::Failed);
            let usage = has_run.then_some(row.usage);
            cells(row.name, usage, row.result.to_string())
        });
        rows.chain([cells("total", Some(sum), String::new())])
    }

    /// Replaces the table of this name in CONTRIBUTING.md.
    pub(super) fn record(&self, name: &str) -> Result<()> {
        let path = workspace::root().join(PAGE);
        let page = fs::read_to_string(&path)?;
        let page = self.recorded(&page, name)?;
        fs::write(&path, page).with_context(|| path.display().to_string())
    }

    fn recorded(&self, page: &str, name: &str) -> Result<String> {
        let (start, end) = (format!("<!-- pipeline: {name} -->\n"), "<!-- end -->");
        let (before, rest) = page
            .split_once(&start)
            .with_context(|| format!("{PAGE} has no table `{name}`"))?;
        let (_, after) = rest
            .split_once(end)
            .with_context(|| format!("the table `{name}` of {PAGE} has no end"))?;
        let mut table = String::from("| step | seconds | CPU |\n| --- | ---: | ---: |\n");
        for [name, seconds, cpu, _, result] in self.cells() {
            let seconds = if seconds.is_empty() { result } else { seconds };
            table.push_str(&format!("| {name} | {seconds} | {cpu} |\n"));
        }
        Ok(format!("{before}{start}\n{table}\n{end}{after}"))
    }
}

fn cells(name: &str, usage: Option<Usage>, result: String) -> [String; 5] {
    let [seconds, cpu, stolen] = usage.map_or_else(Default::default, |usage| {
        [
            seconds(usage.elapsed),
            format!("{:.0}", usage.cpu_seconds),
            format!("{:.0}", usage.stolen_seconds),
        ]
    });
    [name.to_owned(), seconds, cpu, stolen, result]
}

fn seconds(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64())
}

impl Outcome {
    pub(super) fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::Passed,
            Err(_) => Self::Failed,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed => f.write_str("ok"),
            Self::Failed => f.write_str("FAILED"),
            Self::Unchanged(commit) => write!(f, "unchanged since {commit}"),
            Self::NotRun => f.write_str("not run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let used = |elapsed, cpu_seconds| Usage {
            elapsed: Duration::from_secs(elapsed),
            cpu_seconds,
            stolen_seconds: 0.0,
        };
        let mut report = Report::default();
        report.add("format", used(2, 1.0), Outcome::Passed);
        let passed = Outcome::Unchanged("0123456789ab".to_owned());
        report.add("deny", Usage::default(), passed);
        report.add("tests", used(100, 190.0), Outcome::Failed);
        report.add("faults", Usage::default(), Outcome::NotRun);
        report
    }

    #[test]
    fn the_table_lists_failed_and_skipped_steps() {
        let text = report().text();

        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "step          seconds      cpu  stolen  result",
                "format              2        1       0  ok",
                "deny                                    unchanged since 0123456789ab",
                "tests             100      190       0  FAILED",
                "faults                                  not run",
                "total             102      191       0",
            ]
        );
    }

    #[test]
    fn a_recorded_table_replaces_the_one_of_its_name() {
        let page = "a\n<!-- pipeline: x -->\nold\n<!-- end -->\nb\n<!-- pipeline: y -->\nkept\n<!-- end -->\n";

        let page = report().recorded(page, "x").unwrap();

        assert!(page.starts_with("a\n<!-- pipeline: x -->\n\n| step |"));
        assert!(page.contains("| deny | unchanged since 0123456789ab |  |\n"));
        assert!(page.ends_with(
            "| total | 102 | 191 |\n\n<!-- end -->\nb\n<!-- pipeline: y -->\nkept\n<!-- end -->\n"
        ));
        assert!(report().recorded("a", "x").is_err());
    }
}
