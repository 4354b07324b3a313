//! Costs by size as tables, a plot and JSON.

use anyhow::Result;
use comfy_table::Table;
use serde_json::{Value, json};

use super::super::report::{align_right, new};
use super::MILLION;
use super::choice::Choice;
use super::cost::Cost;
use super::fill::MIX;
use super::operation::Operation;
use super::size::{Part, total};
use crate::plot::{Chart, Group};

/// Maximum cost of an operation or a token at a larger size, relative to the smallest.
const RATIO_MAX: f64 = 1.25;

/// Results at one size; costs are in the order of the operations.
///
/// The load of the machine changes while a table grows. So a second table of the smallest size is measured in the same
/// rounds: ratios compare costs of the same minutes.
pub(super) struct Grown {
    pub(super) tokens: u64,
    pub(super) parts: Vec<Part>,
    pub(super) costs: Vec<Cost>,
    /// Costs of the smallest size in the same rounds.
    pub(super) smallest: Vec<Cost>,
}

impl Grown {
    fn label(&self) -> String {
        format!("{} million", self.tokens as f64 / MILLION)
    }

    fn bytes_of(&self, name: &str) -> f64 {
        let part = self.parts.iter().find(|part| part.name == name);
        part.map_or(0.0, |part| part.bytes_per_token)
    }
}

/// A line of progress.
pub(super) fn of_size(grown: &Grown) -> String {
    let costs: Vec<String> = Operation::ALL
        .iter()
        .zip(&grown.costs)
        .map(|(operation, cost)| format!("{} {:.0} µs", operation.name(), cost.microseconds))
        .collect();
    format!(
        "growth: {:.0} bytes per token; {}",
        total(&grown.parts),
        costs.join(", ")
    )
}

pub(super) fn costs(grown: &[Grown]) -> Table {
    let mut table = new([
        "operation",
        "tokens",
        "µs",
        "smallest, µs",
        "ratio",
        "blocks",
        "ratio",
        "of them read",
        "log bytes",
        "log pages",
    ]);
    for (index, operation) in Operation::ALL.iter().enumerate() {
        for at in grown {
            let (cost, smallest) = (at.costs[index], at.smallest[index]);
            table.add_row([
                operation.name().to_owned(),
                at.label(),
                format!("{:.0}", cost.microseconds),
                format!("{:.0}", smallest.microseconds),
                format!("{:.2}", cost.microseconds / smallest.microseconds),
                format!("{:.1}", cost.blocks()),
                format!("{:.2}", cost.blocks() / smallest.blocks()),
                format!("{:.2}", cost.blocks_read),
                if_writes(*operation, format!("{:.0}", cost.wal_bytes)),
                if_writes(*operation, format!("{:.2}", cost.wal_pages)),
            ]);
        }
    }
    align_right(&mut table, 2..10);
    table
}

fn if_writes(operation: Operation, text: String) -> String {
    match operation.writes() {
        true => text,
        false => String::new(),
    }
}

pub(super) fn bytes(grown: &[Grown]) -> Table {
    let mut header = vec!["bytes per token".to_owned()];
    header.extend(grown.iter().map(Grown::label));
    let mut table = new(header);
    let names = grown.first().map_or(&[][..], |first| &first.parts);
    for part in names {
        let mut row = vec![part.name.clone()];
        row.extend(
            grown
                .iter()
                .map(|at| format!("{:.1}", at.bytes_of(&part.name))),
        );
        table.add_row(row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(grown.iter().map(|at| format!("{:.1}", total(&at.parts))));
    table.add_row(row);
    align_right(&mut table, 1..grown.len() + 1);
    table
}

/// Costs above the maximum, compared with the smallest size.
pub(super) fn exceeding(grown: &[Grown]) -> Vec<String> {
    let Some(first) = grown.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for at in &grown[1..] {
        let mut compare = |what: &str, now: f64, then: f64, unit: &str| {
            if now > then * RATIO_MAX {
                let (label, ratio) = (at.label(), now / then);
                found.push(format!(
                    "{what} at {label} takes {ratio:.2} times the {unit} of {}",
                    first.label()
                ));
            }
        };
        let costs = at.costs.iter().zip(&at.smallest);
        for (operation, (now, then)) in Operation::ALL.iter().zip(costs) {
            let name = operation.name();
            compare(name, now.microseconds, then.microseconds, "time");
            compare(name, now.blocks(), then.blocks(), "blocks");
            if operation.writes() {
                compare(name, now.wal_bytes, then.wal_bytes, "log");
            }
        }
        compare("a token", total(&at.parts), total(&first.parts), "bytes");
    }
    found
}

/// A group per operation, a bar per size, relative to the smallest.
pub(super) fn chart(grown: &[Grown]) -> Chart {
    let groups = Operation::ALL.iter().enumerate().map(|(index, operation)| {
        let ratio = |at: &Grown| at.costs[index].microseconds / at.smallest[index].microseconds;
        Group {
            name: operation.name().to_owned(),
            ratios: grown.iter().map(ratio).collect(),
        }
    });
    Chart {
        title: "Time of one operation as the number of tokens grows",
        heading: "Time of one operation, relative to the smallest table",
        reference: grown.first().map_or_else(String::new, Grown::label),
        series: grown.iter().map(Grown::label).collect(),
        groups: groups.collect(),
        width: 1100.0,
    }
}

pub(super) fn json(grown: &[Grown], choices: &[Choice]) -> Result<String> {
    let sizes: Vec<Value> = grown
        .iter()
        .map(|at| {
            let costs = at.costs.iter().zip(&at.smallest);
            let costs = Operation::ALL.iter().zip(costs);
            let costs = costs.map(|(operation, (cost, smallest))| {
                json!({
                    "operation": operation.name(),
                    "meaning": operation.meaning(),
                    "cost": cost,
                    "smallest": smallest,
                })
            });
            json!({
                "tokens": at.tokens,
                "bytes_per_token": at.parts,
                "costs": costs.collect::<Vec<_>>(),
            })
        })
        .collect();
    let all = json!({"mix": MIX, "sizes": sizes, "choices": choices});
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(tokens: u64, microseconds: f64, bytes: f64) -> Grown {
        let cost = |microseconds| Cost {
            microseconds,
            blocks_hit: 4.0,
            ..Cost::default()
        };
        Grown {
            tokens,
            parts: vec![Part {
                name: "token".to_owned(),
                bytes_per_token: bytes,
            }],
            costs: vec![cost(microseconds); Operation::ALL.len()],
            smallest: vec![cost(100.0); Operation::ALL.len()],
        }
    }

    #[test]
    fn growth_by_more_than_a_quarter_is_reported() {
        let small = grown(1_000_000, 100.0, 500.0);

        assert!(exceeding(&[]).is_empty());
        let flat = [small, grown(10_000_000, 124.0, 600.0)];
        assert!(exceeding(&flat).is_empty());
        let [small, _] = flat;
        let found = exceeding(&[small, grown(50_000_000, 126.0, 700.0)]);
        assert_eq!(found.len(), Operation::ALL.len() + 1);
        let expected = "get at 50 million takes 1.26 times the time of 1 million";
        assert_eq!(found[0], expected);
        assert!(found.last().unwrap().starts_with("a token at 50 million"));
    }

    #[test]
    fn tables_plot_and_json_contain_every_size() {
        let all = [
            grown(1_000_000, 100.0, 500.0),
            grown(10_000_000, 150.0, 510.0),
        ];

        let (costs, bytes) = (costs(&all).to_string(), bytes(&all).to_string());
        assert_eq!(costs.lines().count(), 2 + 2 * Operation::ALL.len());
        assert!(bytes.contains("510.0") && bytes.contains("10 million"));
        assert_eq!(chart(&all).groups[0].ratios, [1.0, 1.5]);
        let json: Value = serde_json::from_str(&json(&all, &[]).unwrap()).unwrap();
        assert_eq!(json["sizes"][1]["tokens"], 10_000_000);
        assert_eq!(json["sizes"][1]["costs"][0]["cost"]["blocks_hit"], 4.0);
    }
}
