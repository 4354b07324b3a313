//! Cost of operations and size of tokens as the table grows, and the effect of row layouts and kinds of ids.

mod bench;
mod choice;
mod copy;
mod cost;
mod create;
mod fill;
mod ids;
mod operation;
mod pass;
mod report;
mod server;
mod size;
mod watch;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::service_sql::ServiceSql;
use cloakroom_devtools::workspace;

use self::bench::Bench;
use self::cost::{Cost, median_cost};
use self::operation::{Counts, Operation};
use self::report::Grown;
use super::database::Database;

const MILLION: f64 = 1e6;
/// The minimum for a page 1000.
const TOKENS_MIN: u64 = 50_000;
const ROUNDS: usize = 5;
/// Below this, a run is a smoke test, not a measurement.
const SHORT: u64 = 1_000_000;

#[derive(clap::Args)]
pub(super) struct Growing {
    /// Fill to these sizes in turn, in millions of tokens, and compare the cost of operations
    #[arg(long, value_name = "MILLIONS", value_delimiter = ',')]
    grow: Vec<f64>,
    /// At the largest size, also compare kinds of ids, WAL compression, fill factors and an index
    #[arg(long, requires = "grow")]
    choices: bool,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE", requires = "grow")]
    json: Option<PathBuf>,
    /// File of the plot [default: target/growth.svg]
    #[arg(long, value_name = "FILE", requires = "grow")]
    svg: Option<PathBuf>,
}

impl Growing {
    pub(super) fn is_given(&self) -> bool {
        !self.grow.is_empty()
    }
}

pub(super) async fn run(arguments: &Growing, sql: &ServiceSql) -> Result<()> {
    let sizes = sizes(&arguments.grow)?;
    let database = server::start(sql).await?;
    fill::prepare(&database).await?;
    let mut grown: Vec<Grown> = Vec::new();
    let mut from = 0;
    let mut choices = Vec::new();
    let mut stopped = Ok(());
    for &to in &sizes {
        let bytes = grown
            .last()
            .map(|last| size::total(&last.parts).ceil() as u64);
        match fill::add(&database, from..to, bytes).await {
            Ok((rows_s, indexes_s)) => println!(
                "growth: {to} tokens; rows took {rows_s:.0} s, indexes and statistics {indexes_s:.0} s"
            ),
            // Report the results so far.
            Err(error) => {
                stopped = Err(error).with_context(|| format!("not filled to {to} tokens"));
                break;
            }
        }
        from = to;
        server::harden(&database, to >= SHORT).await?;
        let smallest = match sizes.first() {
            Some(&size) if size < to => Some((filled(sql, size).await?, size)),
            _ => None,
        };
        let smallest = smallest.as_ref().map(|(database, size)| (database, *size));
        let tables: Vec<_> = [Some((&database, to)), smallest]
            .into_iter()
            .flatten()
            .collect();
        let measured = measure(&tables, sql).await?;
        println!("{}", report::of_size(&measured));
        grown.push(measured);
        if arguments.choices && Some(&to) == sizes.last() {
            choices = choice::compare(&database, sql, to).await?;
        }
    }
    println!("\n{}\n", fill::MIX);
    println!("{}\n\n{}", report::costs(&grown), report::bytes(&grown));
    for choice in &choices {
        println!("\n{}", choice.table());
    }
    for complaint in report::exceeding(&grown) {
        println!("growth: {complaint}");
    }
    if let Some(file) = &arguments.json {
        write(file, &report::json(&grown, &choices)?)?;
    }
    let svg = arguments.svg.clone();
    let svg = svg.unwrap_or_else(|| workspace::root().join("target/growth.svg"));
    write(&svg, &report::chart(&grown).svg())?;
    stopped
}

/// A table of this size on a server of its own. For one measurement only, which deletes expired tokens.
async fn filled(sql: &ServiceSql, tokens: u64) -> Result<Database> {
    let database = server::start(sql).await?;
    fill::prepare(&database).await?;
    fill::add(&database, 0..tokens, None).await?;
    server::harden(&database, tokens >= SHORT).await?;
    Ok(database)
}

/// Converts millions to tokens, in rising order.
fn sizes(millions: &[f64]) -> Result<Vec<u64>> {
    let sizes: Vec<u64> = millions
        .iter()
        .map(|count| (count * MILLION).round() as u64)
        .collect();
    ensure!(
        sizes.first().is_some_and(|&size| size >= TOKENS_MIN) && sizes.is_sorted_by(|a, b| a < b),
        "sizes must be in rising order and at least {} million",
        TOKENS_MIN as f64 / MILLION
    );
    Ok(sizes)
}

/// Measures all operations on both tables, the growing and the smallest, in turn in every round, so that other load on
/// the machine affects all of them.
async fn measure(tables: &[(&Database, u64)], sql: &ServiceSql) -> Result<Grown> {
    let &(database, tokens) = tables.first().context("there is no table")?;
    let parts = size::measure(database, tokens).await?;
    let mut benches = Vec::new();
    for (database, tokens) in tables {
        benches.push(Bench::new(database, sql, *tokens).await?);
    }
    let (rounds, often) = match tokens < SHORT {
        true => (2, counts(20)),
        false => (ROUNDS, counts(1)),
    };
    // Run once before, to warm the cache, except the sweep: its expired tokens are needed later.
    for bench in &benches {
        for operation in Operation::ALL {
            if operation != Operation::Sweep {
                bench.measure(operation, &counts(20)).await?;
            }
        }
    }
    let mut measured: Vec<Vec<Vec<Cost>>> =
        vec![vec![Vec::new(); Operation::ALL.len()]; benches.len()];
    for _ in 0..rounds {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            for (bench, measured) in benches.iter().zip(&mut measured) {
                measured[index].push(bench.measure(operation, &often).await?);
            }
        }
    }
    let median = |costs: &Vec<Vec<Cost>>| costs.iter().map(|all| median_cost(all)).collect();
    let mut medians = measured.iter().map(median);
    let costs: Vec<Cost> = medians.next().unwrap_or_default();
    Ok(Grown {
        tokens,
        parts,
        smallest: medians.next().unwrap_or_else(|| costs.clone()),
        costs,
    })
}

/// Executions per round, divided by `part`.
fn counts(part: usize) -> Counts {
    Counts {
        single: 2_000 / part,
        pages: 100 / part,
        creates: 1_000 / part,
        creates_at_once: 6_000 / part,
        batches: 3_usize.div_ceil(part),
    }
}

fn write(file: &std::path::Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())?;
    println!("growth: wrote {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rise() {
        let cases = [
            (&[0.1, 0.3][..], Some(vec![100_000, 300_000])),
            (
                &[1.0, 10.0, 50.0],
                Some(vec![1_000_000, 10_000_000, 50_000_000]),
            ),
            (&[10.0, 1.0], None),
            (&[1.0, 1.0], None),
            (&[0.01], None),
            (&[-1.0], None),
        ];
        for (millions, expected) in cases {
            assert_eq!(sizes(millions).ok(), expected, "{millions:?}");
        }
    }
}
