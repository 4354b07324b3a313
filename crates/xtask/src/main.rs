//! Developer tasks: `cargo xtask <command>`; `cargo xtask check` is all of them in order.
#![expect(
    clippy::print_stdout,
    reason = "telling the developer what happens is its job"
)]
#![expect(
    clippy::print_stderr,
    reason = "telling the developer what failed is its job"
)]

mod bench;
mod check;
mod conformance;
mod deny;
mod dist;
mod engines;
mod faults;
mod fuzz;
mod generate;
mod haproxy;
mod packages;
mod plot;
mod process;
mod scale;
mod services;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Developer tasks of Cloakroom",
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that a change must pass, in order
    Check(check::Arguments),
    /// Start and stop a private PostgreSQL and Redis
    #[command(subcommand)]
    Services(services::Command),
    /// Check layout, dependencies between rooms, sizes and names of the sources
    Tidy,
    /// Check licences, sources, banned and duplicate crates against deny.toml
    Deny,
    /// Write the files that are generated from the code
    Generate(generate::Arguments),
    /// Run the clients that the service must stay compatible with
    Conformance(conformance::Arguments),
    /// Measure the service against the bare engine
    Bench(bench::Arguments),
    /// Build the program that ships, by what it was seen to do under load
    Dist(dist::Arguments),
    /// Break a real cluster while clients ask, and count what was acknowledged and lost
    #[command(disable_help_flag = true)]
    Faults(faults::Arguments),
    /// Throw mutated input at every parser; needs nightly and cargo-fuzz
    Fuzz(fuzz::Arguments),
    /// Check how the statements that find tokens behave in a full table
    Scale(scale::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Check(arguments) => check::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Services(command) => services::run(command),
        Command::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Command::Deny => deny::run().map(|()| ExitCode::SUCCESS),
        Command::Generate(arguments) => generate::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Conformance(arguments) => conformance::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Bench(arguments) => bench::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Dist(arguments) => dist::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Faults(arguments) => faults::run(arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Scale(arguments) => scale::run(&arguments).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
