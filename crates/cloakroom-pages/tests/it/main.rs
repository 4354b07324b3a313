//! Tests of hosted pages over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod pages;
