//! The cost of each protection: a node with it against one without.

use comfy_table::Table;
use serde::Serialize;

use super::table;
use crate::bench::load::Operation;
use crate::bench::pair::Pair;

/// The same requests to a node with a feature and to one without.
#[derive(Serialize)]
pub(in crate::bench) struct Compared {
    pub(in crate::bench) operation: Operation,
    pub(in crate::bench) connections: u32,
    pub(in crate::bench) with_per_s: f64,
    pub(in crate::bench) without_per_s: f64,
}

#[derive(Serialize)]
pub(in crate::bench) struct Comparison {
    title: &'static str,
    names: (&'static str, &'static str),
    pub(in crate::bench) rows: Vec<Compared>,
}

impl Comparison {
    pub(in crate::bench) fn new(pair: &Pair, rows: Vec<Compared>) -> Self {
        Self {
            title: pair.title,
            names: (pair.with.name, pair.without.name),
            rows,
        }
    }

    /// Throughput relative to the node without it.
    pub(super) fn table(&self) -> Table {
        let (with, without) = (format!("{}/s", self.names.0), format!("{}/s", self.names.1));
        let rows = self.rows.iter().map(|row| {
            [
                row.operation.name().to_owned(),
                row.connections.to_string(),
                format!("{:.0}", row.with_per_s),
                format!("{:.0}", row.without_per_s),
                format!("{:.2}", row.with_per_s / row.without_per_s),
            ]
        });
        table([self.title, "connections", &with, &without, "ratio"], rows)
    }
}
