//! Benchmarks: `cargo xtask bench` and `cargo xtask scale` build and run this program.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool prints its results"
)]
#![expect(clippy::print_stderr, reason = "a command-line tool prints its errors")]

mod bench;
mod plot;
mod runtime;
mod scale;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Benchmarks of Cloakroom",
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure a node over HTTP against PostgreSQL alone
    Bench(bench::Arguments),
    /// Check query plans and page costs in a full table, or measure costs as the table grows
    Scale(scale::Arguments),
    /// Send every kind of request to a node and measure nothing; for profiling
    Exercise(bench::ExerciseArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Scale(arguments) => scale::run(&arguments),
        Command::Exercise(arguments) => bench::exercise(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
