//! Test support: a database per test, a running vault, and an HTTP client.

mod chance;
mod client;
mod database;
mod database_proxy;
mod jwe;
mod log_capture;
mod luhn;
mod named_tokens;
mod redis;
mod test_vault;

pub(crate) use chance::{SeededRng, calls, number_or};
pub(crate) use client::{Client, TestResponse};
pub(crate) use database::{TestDatabase, TestServer};
pub(crate) use database_proxy::DatabaseProxy;
pub(crate) use jwe::{encrypt, encrypt_with};
pub(crate) use log_capture::LogCapture;
pub(crate) use luhn::passes_luhn;
pub(crate) use named_tokens::NamedTokens;
pub(crate) use redis::TestRedis;
pub(crate) use test_vault::{
    TestApplication, TestVault, everything, grants, rule, use_long_timeouts,
};
