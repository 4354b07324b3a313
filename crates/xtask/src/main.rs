//! Developer tasks: `cargo xtask <command>`. `cargo xtask check` runs the pipeline.
#![expect(
    clippy::print_stdout,
    reason = "a command-line tool prints its progress"
)]
#![expect(clippy::print_stderr, reason = "a command-line tool prints its errors")]

mod benchmarks;
mod cargo_tools;
mod check;
mod conformance;
mod deny;
mod dist;
mod docs;
mod engines;
mod faults;
mod fuzz;
mod generate;
mod programs;
mod release;
mod services;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Developer tasks of Cloakroom",
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the checks that every change must pass, in order, or the deep ones
    Check(check::Arguments),
    /// Start and stop a private PostgreSQL and Redis
    #[command(subcommand)]
    Services(services::Command),
    /// Check layout, cycles between modules, sizes and names of source files
    Tidy,
    /// Check licenses, sources, banned and duplicate crates against deny.toml
    Deny(deny::Arguments),
    /// Write the files that are generated from code and tests
    Generate(generate::Arguments),
    /// Run the official clients and other conformance suites
    Conformance(conformance::Arguments),
    /// Measure a node over HTTP against PostgreSQL alone
    #[command(disable_help_flag = true)]
    Bench(benchmarks::Arguments),
    /// Build the release binary with profile-guided optimization (PGO)
    Dist(dist::Arguments),
    /// Build the documentation site and check its links; or lint it, or execute its commands
    Docs(docs::Arguments),
    /// Build packages, archive, image, SBOM, checksums and signature of a release from a binary
    Release(release::Arguments),
    /// Build a release of the debug binary, lint it, and run the commands of the install pages
    Packages(release::CheckArguments),
    /// Inject faults into a cluster under load, and count lost writes that were acknowledged
    #[command(disable_help_flag = true)]
    Faults(faults::Arguments),
    /// Fuzz every parser of client input; needs nightly and cargo-fuzz
    Fuzz(fuzz::Arguments),
    /// Check query plans and page costs in a full table, or measure costs as the table grows
    #[command(disable_help_flag = true)]
    Scale(benchmarks::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Check(arguments) => check::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Services(command) => services::run(command),
        Command::Tidy => tidy::run().map(|()| ExitCode::SUCCESS),
        Command::Deny(arguments) => deny::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Generate(arguments) => generate::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Conformance(arguments) => conformance::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Bench(arguments) => benchmarks::run("bench", arguments),
        Command::Dist(arguments) => dist::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Docs(arguments) => docs::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Release(arguments) => release::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Packages(arguments) => release::check(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Faults(arguments) => faults::run(arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Scale(arguments) => benchmarks::run("scale", arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
