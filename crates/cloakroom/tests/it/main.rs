//! The vault through its front door: real PostgreSQL, real HTTP, one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells its figures on its output"
)]

mod access;
mod bins;
mod cards;
mod conventions;
mod create;
mod deduplication;
mod documents;
mod doors;
mod expiry;
mod ids;
mod intents;
mod isolation;
mod keys;
mod lists;
mod logs;
mod searches;
mod security_codes;
mod storage;
mod support;
mod tokens;
mod updates;
