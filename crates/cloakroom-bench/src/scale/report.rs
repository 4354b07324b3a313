//! The results as Markdown tables.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Row, Table};

use super::hard::Hard;
use super::page::Measured;
use super::plan::Tried;

pub(super) fn statements(tried: &[Tried]) -> Table {
    let mut table = new([
        "statement",
        "case",
        "plan",
        "rows",
        "buffers",
        "ms",
        "nodes",
    ]);
    for tried in tried {
        table.add_row([
            tried.statement.to_owned(),
            tried.name.to_owned(),
            tried.mode.to_owned(),
            tried.plan.rows_read().to_string(),
            tried.plan.buffers.to_string(),
            format!("{:.2}", tried.plan.milliseconds),
            tried.plan.describe(),
        ]);
    }
    align_right(&mut table, 3..6);
    table
}

pub(super) fn pages(pages: &[Measured]) -> Table {
    let mut table = new(["list", "page 1, ms", "page 1000, ms", "ratio"]);
    for page in pages {
        table.add_row([
            page.name.to_owned(),
            milliseconds(page.first),
            milliseconds(page.deep),
            format!("{:.2}", page.ratio()),
        ]);
    }
    align_right(&mut table, 1..4);
    table
}

pub(super) fn hard(hard: &[Hard]) -> Table {
    let mut table = new(["situation", "operation", "ms", "buffers"]);
    for hard in hard {
        table.add_row([
            hard.situation.clone(),
            hard.what.to_owned(),
            milliseconds(hard.median),
            hard.buffers.to_string(),
        ]);
    }
    align_right(&mut table, 2..4);
    table
}

pub(super) fn new(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    table
}

pub(super) fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in table
        .column_iter_mut()
        .skip(columns.start)
        .take(columns.len())
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn milliseconds(time: std::time::Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
