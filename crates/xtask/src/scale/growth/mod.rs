//! What operations and bytes per token cost as the table grows, and what the shape of rows and ids does to it.

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

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use self::cost::{Cost, median_cost};
use self::operation::{Bench, Counts, Operation};
use self::report::Grown;
use super::database::Database;
use super::source::Source;
use crate::workspace;

const MILLION: f64 = 1e6;
/// With fewer, there is no page 1000.
const TOKENS_MIN: u64 = 50_000;
const ROUNDS: usize = 5;
/// Fewer tokens than this show that it runs, not what it costs.
const SHORT: u64 = 1_000_000;

#[derive(clap::Args)]
pub(super) struct Growing {
    /// Fill to these sizes one after the other, in millions of tokens, and compare what operations cost
    #[arg(long, value_name = "MILLIONS", value_delimiter = ',')]
    grow: Vec<f64>,
    /// At the largest size, also compare kinds of ids, compression of the log, fill factors and an index
    #[arg(long, requires = "grow")]
    choices: bool,
    /// Also write what was measured as JSON
    #[arg(long, value_name = "FILE", requires = "grow")]
    json: Option<PathBuf>,
    /// Where the plot goes [default: target/growth.svg]
    #[arg(long, value_name = "FILE", requires = "grow")]
    svg: Option<PathBuf>,
}

impl Growing {
    pub(super) fn is_given(&self) -> bool {
        !self.grow.is_empty()
    }
}

pub(super) async fn run(arguments: &Growing, source: &Source) -> Result<()> {
    let sizes = sizes(&arguments.grow)?;
    let database = server::start(source).await?;
    fill::prepare(&database).await?;
    let mut grown: Vec<Grown> = Vec::new();
    let mut from = 0;
    let mut choices = Vec::new();
    let mut stopped = Ok(());
    for &to in &sizes {
        let bytes = grown
            .last()
            .map(|last| size::total(&last.parts).ceil() as u64);
        match fill::add(&database, (from, to), bytes).await {
            Ok((rows_s, indexes_s)) => println!(
                "growth: {to} tokens; rows took {rows_s:.0} s, indexes and statistics {indexes_s:.0} s"
            ),
            // What was measured so far is told all the same.
            Err(error) => {
                stopped = Err(error).with_context(|| format!("not filled to {to} tokens"));
                break;
            }
        }
        from = to;
        server::harden(&database, to >= SHORT).await?;
        let smallest = match sizes.first() {
            Some(&size) if size < to => Some((filled(source, size).await?, size)),
            _ => None,
        };
        let smallest = smallest.as_ref().map(|(database, size)| (database, *size));
        let tables: Vec<_> = [Some((&database, to)), smallest]
            .into_iter()
            .flatten()
            .collect();
        let measured = measure(&tables, source).await?;
        println!("{}", report::of_size(&measured));
        grown.push(measured);
        if arguments.choices && Some(&to) == sizes.last() {
            choices = choice::compare(&database, source, to).await?;
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

/// A table of this size on a server of its own. What is swept is gone, so it serves one measurement.
async fn filled(source: &Source, tokens: u64) -> Result<Database> {
    let database = server::start(source).await?;
    fill::prepare(&database).await?;
    fill::add(&database, (0, tokens), None).await?;
    server::harden(&database, tokens >= SHORT).await?;
    Ok(database)
}

/// From millions to tokens, each larger than the one before.
fn sizes(millions: &[f64]) -> Result<Vec<u64>> {
    let sizes: Vec<u64> = millions
        .iter()
        .map(|count| (count * MILLION).round() as u64)
        .collect();
    ensure!(
        sizes.first().is_some_and(|&size| size >= TOKENS_MIN) && sizes.is_sorted_by(|a, b| a < b),
        "sizes are given in rising order, from {} million on",
        TOKENS_MIN as f64 / MILLION
    );
    Ok(sizes)
}

/// All operations take turns, round by round, so that whatever else the machine does meets all of them, and so do the
/// tables: the one that grows and, beside it, the smallest.
async fn measure(tables: &[(&Database, u64)], source: &Source) -> Result<Grown> {
    let &(database, tokens) = tables.first().context("there is no table")?;
    let parts = size::measure(database, tokens).await?;
    let mut benches = Vec::new();
    for (database, tokens) in tables {
        benches.push(Bench::new(database, source, *tokens).await?);
    }
    let (rounds, often) = match tokens < SHORT {
        true => (2, counts(20)),
        false => (ROUNDS, counts(1)),
    };
    // Once before, so that memory holds what it would hold. What has expired is needed later.
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

/// How often a round does each, or a part of that.
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
