//! The report of a run: a row per fault, as a table and as JSON.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::checker::Checked;
use crate::clients::Workload;
use crate::clients::stats::{Invariant, Outages};
use crate::soak::SoakResults;

/// The results of a fault.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) fault: String,
    pub(crate) tried: u64,
    pub(crate) acknowledged: u64,
    pub(crate) reads: u64,
    pub(crate) unanswered: u64,
    pub(crate) tokens: usize,
    pub(crate) proxied: usize,
    pub(crate) events: usize,
    pub(crate) event_duplicates: u64,
    pub(crate) lost: usize,
    pub(crate) doubled: usize,
    pub(crate) wrong: usize,
    pub(crate) resurrected: usize,
    pub(crate) unrecorded: usize,
    pub(crate) writes_away_s: f64,
    pub(crate) reads_away_s: f64,
    pub(crate) catalog_away_s: f64,
    /// Messages of the first violations of each invariant.
    pub(crate) violations: Vec<String>,
    pub(crate) seconds: f64,
}

impl Row {
    pub(crate) fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn violates(&self, invariant: Invariant) -> bool {
        let prefix = format!("{}: ", invariant.name());
        self.violations.iter().any(|what| what.starts_with(&prefix))
    }
}

pub(crate) fn add_rows(mut sum: Row, row: Row) -> Row {
    sum.tokens += row.tokens;
    sum.lost += row.lost;
    sum.doubled += row.doubled;
    sum.wrong += row.wrong;
    sum.resurrected += row.resurrected;
    sum.violations.extend(row.violations);
    sum.seconds = row.seconds;
    sum
}

pub(crate) fn row(
    name: &str,
    workload: &Workload,
    checked: Checked,
    longest_outages: Outages<Duration>,
    started_at: Instant,
) -> Row {
    let stats = &workload.stats;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Row {
        fault: name.to_owned(),
        tried: count(&stats.tried),
        acknowledged: count(&stats.acknowledged),
        reads: count(&stats.reads),
        unanswered: count(&stats.failed),
        tokens: checked.tokens,
        proxied: checked.outbound.proxied,
        events: checked.outbound.events,
        event_duplicates: checked.outbound.duplicates,
        lost: stats.count(Invariant::Lost),
        doubled: stats.count(Invariant::Doubled),
        wrong: stats.count(Invariant::Wrong),
        resurrected: stats.count(Invariant::Resurrected),
        unrecorded: stats.count(Invariant::AuditError),
        writes_away_s: longest_outages.writes.as_secs_f64(),
        reads_away_s: longest_outages.reads.as_secs_f64(),
        catalog_away_s: longest_outages.catalog.as_secs_f64(),
        violations: stats.messages(),
        seconds: started_at.elapsed().as_secs_f64(),
    }
}

const HEAD: [&str; 17] = [
    "fault",
    "tried",
    "acknowledged",
    "reads",
    "unanswered",
    "tokens",
    "proxied",
    "events",
    "event duplicates",
    "lost",
    "doubled",
    "wrong",
    "resurrected",
    "unrecorded",
    "writes unavailable s",
    "reads unavailable s",
    "catalog unavailable s",
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
            row.proxied.to_string(),
            row.events.to_string(),
            row.event_duplicates.to_string(),
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

/// The results of a soak test by minute.
pub(crate) fn soak(results: &SoakResults) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "minute",
        "fault",
        "fault s",
        "requests",
        "failed during fault",
        "failed otherwise",
        "p50 ms",
        "p99 ms",
        "memory MB",
    ]);
    for (number, minute) in results.minutes.iter().enumerate() {
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

/// The results of mutation tests.
pub(crate) fn mutations(rows: &[[&str; 4]]) -> Table {
    let mut table = Table::new();
    let head = ["mutation", "fault", "invariant", "result"];
    table.load_style(ASCII_MARKDOWN).set_header(head);
    for row in rows {
        table.add_row(*row);
    }
    table
}
