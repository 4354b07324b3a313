//! What every test needs: a database of its own, a running vault, and someone who asks.

mod client;
mod database;
mod lines;
mod redis;
mod test_vault;

pub(crate) use client::Client;
pub(crate) use database::{TestDatabase, TestServer};
pub(crate) use lines::Lines;
pub(crate) use redis::TestRedis;
pub(crate) use test_vault::{Holder, TestVault, everything, grants, rule};
