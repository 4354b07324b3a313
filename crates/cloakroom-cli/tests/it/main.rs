//! Tests of the command as a process: its output, signals and files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests panic to fail, and print measurements"
)]

mod access;
mod audit;
mod bins;
mod bootstrap;
mod canaries;
mod collector;
mod cryptography;
mod custody;
mod dashboards;
mod deprecations;
mod dev;
mod doctor;
mod erasures;
mod exhaustion;
mod formulas;
mod idempotency;
mod limits;
mod memory;
mod observability;
mod output;
mod processor;
mod root_moves;
mod rotation;
mod serve;
mod shop;
mod support;
mod tenants;
mod threeds_simulator;
mod transfer;
mod webhooks;
