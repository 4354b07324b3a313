//! What a run tells: a row per fault, as a table and as JSON.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::clients::tally::Rule;
use crate::soak::Figures;

/// What one fault came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) fault: String,
    pub(crate) tried: u64,
    pub(crate) acknowledged: u64,
    pub(crate) reads: u64,
    pub(crate) unanswered: u64,
    pub(crate) tokens: usize,
    pub(crate) lost: usize,
    pub(crate) doubled: usize,
    pub(crate) wrong: usize,
    pub(crate) resurrected: usize,
    pub(crate) unrecorded: usize,
    pub(crate) writes_away_s: f64,
    pub(crate) reads_away_s: f64,
    pub(crate) catalog_away_s: f64,
    /// Everything that broke a rule, the first of each kind word by word.
    pub(crate) violations: Vec<String>,
    pub(crate) seconds: f64,
}

impl Row {
    pub(crate) fn is_green(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn breaks(&self, rule: Rule) -> bool {
        let told = format!("{}: ", rule.name());
        self.violations.iter().any(|what| what.starts_with(&told))
    }
}

const HEAD: [&str; 14] = [
    "fault",
    "tried",
    "acknowledged",
    "reads",
    "unanswered",
    "tokens",
    "lost",
    "doubled",
    "wrong",
    "resurrected",
    "unrecorded",
    "writes away s",
    "reads away s",
    "catalog away s",
];

pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(HEAD);
    for row in rows {
        table.add_row([
            row.fault.clone(),
            row.tried.to_string(),
            row.acknowledged.to_string(),
            row.reads.to_string(),
            row.unanswered.to_string(),
            row.tokens.to_string(),
            row.lost.to_string(),
            row.doubled.to_string(),
            row.wrong.to_string(),
            row.resurrected.to_string(),
            row.unrecorded.to_string(),
            format!("{:.1}", row.writes_away_s),
            format!("{:.1}", row.reads_away_s),
            format!("{:.1}", row.catalog_away_s),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A long load, minute by minute.
pub(crate) fn soak(figures: &Figures) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "minute",
        "fault",
        "broken s",
        "requests",
        "failed in it",
        "failed otherwise",
        "p50 ms",
        "p99 ms",
        "memory MB",
    ]);
    for (number, minute) in figures.minutes.iter().enumerate() {
        table.add_row([
            (number + 1).to_string(),
            minute.fault.clone(),
            format!("{:.0}", minute.broken_s),
            minute.requests.to_string(),
            minute.failed_inside.to_string(),
            minute.failed_outside.to_string(),
            format!("{:.1}", minute.p50_ms),
            format!("{:.1}", minute.p99_ms),
            format!("{:.0}", minute.memory_mb),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Which sabotage was noticed, by which rule.
pub(crate) fn sabotages(rows: &[[&str; 4]]) -> Table {
    let mut table = Table::new();
    let head = ["sabotage", "fault", "rule", "result"];
    table.load_style(ASCII_MARKDOWN).set_header(head);
    for row in rows {
        table.add_row(*row);
    }
    table
}
