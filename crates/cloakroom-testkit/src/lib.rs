//! What the HTTP tests of every area share: a database per test, a running vault, an HTTP client, and servers of
//! other companies that a test controls.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod bin_table;
mod chance;
mod client;
mod database;
mod database_proxy;
mod destination;
mod jwe;
mod log_capture;
mod luhn;
mod named_tokens;
mod redis;
mod test_vault;

pub use bin_table::{bin_table, table_with_funding};
pub use chance::{SeededRng, calls, number_or};
pub use client::{Client, TestResponse};
pub use database::{TestDatabase, TestServer};
pub use database_proxy::DatabaseProxy;
pub use destination::{HOST, ReceivedRequest, Reply, TestDestination};
pub use jwe::{encrypt, encrypt_with};
pub use log_capture::LogCapture;
pub use luhn::passes_luhn;
pub use named_tokens::NamedTokens;
pub use redis::TestRedis;
pub use test_vault::{
    TestApplication, TestVault, everything, grants, held_by, rule, use_long_timeouts,
};
