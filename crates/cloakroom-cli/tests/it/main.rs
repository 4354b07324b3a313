//! The command as people and programs use it: as a process, with its output, signals and files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells its figures on its output"
)]

mod audit;
mod bins;
mod bootstrap;
mod canaries;
mod deprecations;
mod dev;
mod formulas;
mod idempotency;
mod limits;
mod memory;
mod serve;
mod support;
mod tenants;
mod threeds_simulator;
