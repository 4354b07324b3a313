//! What every test needs: a database of its own, a running vault, and someone who asks.

mod chance;
mod client;
mod database;
mod jwe;
mod lines;
mod redis;
mod shelf;
mod tap;
mod test_vault;

pub(crate) use chance::{Chance, calls, number_or};
pub(crate) use client::{Answer, Client};
pub(crate) use database::{TestDatabase, TestServer};
pub(crate) use jwe::{encrypt, encrypt_with};
pub(crate) use lines::Lines;
pub(crate) use redis::TestRedis;
pub(crate) use shelf::Shelf;
pub(crate) use tap::Tap;
pub(crate) use test_vault::{Holder, TestVault, everything, grants, rule};
