//! Verifies that the baseline writes what the node writes: as many rows per token, of the same size, in the same tables.

use anyhow::{Context, Result, ensure};

use crate::bench::database::Database;

/// Tolerance for numbers of different length.
const DIFFERENCE_MAX: f64 = 0.02;

/// The rows of a create in one table.
#[derive(Debug, PartialEq)]
struct Left {
    table: String,
    rows_per_token: f64,
    bytes_per_row: f64,
}

/// Compares the vault's rows with the initial rows of the baseline and with those that its statement has inserted since.
/// Returns the sizes of the rows.
pub(in crate::bench) async fn require_same_rows(
    vault: &Database,
    engine: &Database,
) -> Result<String> {
    let theirs = left(vault, "<= (select at from bench.newest)").await?;
    for part in ["<=", ">"] {
        let ours = left(engine, &format!("{part} (select at from bench.newest)")).await?;
        ensure!(
            is_same(&theirs, &ours),
            "the engine's rows are not the node's: {ours:?} instead of {theirs:?}"
        );
    }
    let sizes = theirs
        .iter()
        .map(|left| format!("{:.0} in {}", left.bytes_per_row, left.table));
    Ok(format!(
        "bytes per row: {}",
        sizes.collect::<Vec<_>>().join(", ")
    ))
}

async fn left(database: &Database, created_at: &str) -> Result<Vec<Left>> {
    // Entries about cards, without the creation of the tenant. Only the last entry of a batch has a signature, and a batch
    // of the baseline has one entry.
    let tables = [
        ("token", "true", "true"),
        ("term", "true", "true"),
        (
            "log",
            "entity_kind = 2 and operation = 1",
            "commit is not null",
        ),
    ];
    let queries = tables.map(|(table, condition, measured)| {
        format!(
            "select '{table}', count(*)::float8 / (select count(*) from token where created_at {created_at}),
                    avg(pg_column_size({table}.*)) filter (where {measured})
             from {table}
             where created_at {created_at} and {condition}"
        )
    });
    parse(&database.query(&queries.join(";")).await?)
}

fn parse(text: &str) -> Result<Vec<Left>> {
    text.lines()
        .map(|line| {
            let columns: Vec<&str> = line.split('|').collect();
            let [table, rows_per_token, bytes_per_row] = columns[..] else {
                anyhow::bail!("three columns expected: {line}");
            };
            let number = |text: &str| text.parse().with_context(|| format!("no number: {line}"));
            Ok(Left {
                table: table.to_owned(),
                rows_per_token: number(rows_per_token)?,
                bytes_per_row: number(bytes_per_row)?,
            })
        })
        .collect()
}

fn is_same(theirs: &[Left], ours: &[Left]) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= DIFFERENCE_MAX * a;
    theirs.len() == ours.len()
        && theirs.iter().zip(ours).all(|(theirs, ours)| {
            theirs.table == ours.table
                && close(theirs.rows_per_token, ours.rows_per_token)
                && close(theirs.bytes_per_row, ours.bytes_per_row)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "token|1|340.2\nterm|1|90\nlog|1.001|250\n";

    #[test]
    fn rows_that_differ_in_number_or_size_are_told_apart() {
        let node = parse(NODE).unwrap();
        let cases = [
            ("token|1|338\nterm|1|90\nlog|1|251\n", true),
            ("token|1|320\nterm|1|90\nlog|1|250\n", false),
            ("token|1|340\nterm|2|90\nlog|1|250\n", false),
            ("token|1|340\nterm|1|90\n", false),
            ("token|1|340\nclaim|1|90\nlog|1|250\n", false),
        ];
        for (engine, expected) in cases {
            assert_eq!(
                is_same(&node, &parse(engine).unwrap()),
                expected,
                "{engine}"
            );
        }
    }

    #[test]
    fn an_empty_table_is_no_answer() {
        for text in ["token|1|\n", "token|1\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
