//! Performance targets of a node, and whether it reached them.

use comfy_table::Table;
use serde::Serialize;

use super::{Row, table};
use crate::bench::load::Operation;

/// Number of connections of the targets.
const CONNECTIONS: u32 = 64;

const P99_TO_ENGINE_MAX: f64 = 1.5;
const MEMORY_MB_MAX: f64 = 150.0;

/// Targets of one operation.
struct Bounds {
    operation: Operation,
    /// Requests per second, relative to PostgreSQL alone.
    ratio_min: f64,
    /// CPU time of the server per request; reaching one of the two is enough.
    cpu: Option<CpuBounds>,
}

struct CpuBounds {
    us: f64,
    to_hello: f64,
}

const BOUNDS: [Bounds; 3] = [
    Bounds {
        operation: Operation::Create,
        ratio_min: 1.5,
        cpu: Some(CpuBounds {
            us: 100.0,
            to_hello: 9.0,
        }),
    },
    Bounds {
        operation: Operation::GetMasked,
        ratio_min: 1.0,
        cpu: Some(CpuBounds {
            us: 45.0,
            to_hello: 4.0,
        }),
    },
    Bounds {
        operation: Operation::GetRevealed,
        ratio_min: 0.8,
        cpu: None,
    },
];

/// One target and the result.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Line {
    what: String,
    bound: String,
    measured: String,
    reached: bool,
}

/// A line per target; none if that number of connections was not measured.
pub(super) fn of(rows: &[Row]) -> Vec<Line> {
    let rows = rows.iter().filter(|row| row.connections == CONNECTIONS);
    let mut lines = Vec::new();
    let mut memory: Option<f64> = None;
    for row in rows {
        let bounds = BOUNDS
            .iter()
            .find(|bounds| bounds.operation == row.operation);
        lines.extend(bounds.into_iter().flat_map(|bounds| judge(bounds, row)));
        memory = Some(memory.unwrap_or_default().max(row.memory_mb));
    }
    lines.extend(memory.map(|mb| Line {
        what: "memory".to_owned(),
        bound: format!("< {MEMORY_MB_MAX:.0} MB"),
        measured: format!("{mb:.0} MB"),
        reached: mb < MEMORY_MB_MAX,
    }));
    lines
}

fn judge(bounds: &Bounds, row: &Row) -> Vec<Line> {
    let name = row.operation.name();
    let mut lines = vec![Line {
        what: format!("{name}, rate to the engine's"),
        bound: format!(">= {:.2}", bounds.ratio_min),
        measured: format!("{:.2}", row.ratio),
        reached: row.ratio >= bounds.ratio_min,
    }];
    if let Some(cpu) = &bounds.cpu {
        lines.push(Line {
            what: format!("{name}, server CPU"),
            bound: format!("< {:.0} µs or < {:.1} x hello", cpu.us, cpu.to_hello),
            measured: format!("{:.1} µs, {:.1} x hello", row.cpu.servers, row.to_hello),
            reached: row.cpu.servers < cpu.us || row.to_hello < cpu.to_hello,
        });
    }
    let p99_max = row.engine_p99_ms * P99_TO_ENGINE_MAX;
    lines.push(Line {
        what: format!("{name}, p99 to the engine's"),
        bound: format!("<= {P99_TO_ENGINE_MAX:.1} x, {p99_max:.2} ms"),
        measured: format!(
            "{:.2} x, {:.2} ms",
            row.p99_ms / row.engine_p99_ms,
            row.p99_ms
        ),
        reached: row.p99_ms <= p99_max,
    });
    lines
}

pub(super) fn table_of(lines: &[Line]) -> Table {
    let rows = lines.iter().map(|line| {
        let reached = if line.reached { "yes" } else { "no" };
        [line.what.as_str(), &line.bound, &line.measured, reached].map(str::to_owned)
    });
    let what = format!("at {CONNECTIONS} connections");
    table([&what, "bound", "measured", "reached"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::row;

    fn missed(rows: &[Row]) -> Vec<String> {
        let lines = of(rows).into_iter().filter(|line| !line.reached);
        lines.map(|line| line.what).collect()
    }

    fn good(operation: Operation) -> Row {
        let mut row = row(operation, 64, 1.5);
        row.cpu.servers = 44.9;
        row.p99_ms = 1.5;
        row
    }

    #[test]
    fn what_reaches_every_bound_has_no_line_against_it() {
        let rows = BOUNDS.map(|bounds| good(bounds.operation));

        assert_eq!(of(&rows).len(), 9);
        assert!(missed(&rows).is_empty(), "{:?}", of(&rows));
    }

    #[test]
    fn each_bound_can_be_missed() {
        let masked = good(Operation::GetMasked);
        type Spoil = fn(&mut Row);
        let cases: [(Spoil, &[&str]); 5] = [
            (
                |row| row.ratio = 0.99,
                &["get masked, rate to the engine's"],
            ),
            (
                |row| row.p99_ms = 1.51,
                &["get masked, p99 to the engine's"],
            ),
            (|row| row.memory_mb = 150.0, &["memory"]),
            (|row| row.cpu.servers = 45.0, &["get masked, server CPU"]),
            // Reaching one of the two CPU targets is enough.
            (
                |row| {
                    row.cpu.servers = 45.0;
                    row.to_hello = 3.9;
                },
                &[],
            ),
        ];
        for (spoil, expected) in cases {
            let mut row = masked.clone();
            spoil(&mut row);
            assert_eq!(missed(&[row]), expected);
        }
    }

    #[test]
    fn other_numbers_of_connections_are_not_judged() {
        assert_eq!(of(&[row(Operation::Create, 16, 0.1)]), []);
    }

    #[test]
    fn the_table_tells_yes_or_no() {
        let mut row = good(Operation::Create);
        row.ratio = 1.49;

        let text = table_of(&of(&[row])).to_string();

        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2].contains(">= 1.50") && lines[2].ends_with(" no |"),
            "{text}"
        );
        assert!(lines[3].ends_with(" yes |"), "{text}");
    }
}
