//! Selection and outcome of counters, without Redis.

mod counters;
mod local_windows;
mod reserves;

use std::sync::Arc;
use std::time::Duration;

use super::counter::Counter;
use super::{Action, Row, Table};

fn counter(row: &Arc<Row>) -> Counter {
    Counter {
        row: row.clone(),
        name: row.name.clone(),
        limit: row.requests,
        settings: "limits.file",
    }
}

fn small_row(name: String, requests: u64, window_ms: u64, block_ms: u64) -> Arc<Row> {
    let mut row = (*Table::shipped().unwrap().rows[0]).clone();
    row.name = name;
    row.requests = requests;
    row.window = Duration::from_millis(window_ms);
    row.action = match block_ms {
        0 => Action::Throttle,
        time => Action::Block(Duration::from_millis(time)),
    };
    Arc::new(row)
}
