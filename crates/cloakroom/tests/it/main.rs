//! Tests of the service as a whole over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod adversary;
mod attacks;
mod authorization;
mod conventions;
mod custody;
mod erasures;
mod formulas;
mod guides;
mod isolation;
mod readiness;
mod rotation;
mod storage;
mod transfer;
