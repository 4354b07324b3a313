//! The vault through its front door: real PostgreSQL, real HTTP, one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells its figures on its output"
)]

mod access;
mod conventions;
mod doors;
mod keys;
mod storage;
mod support;
mod tokens;
