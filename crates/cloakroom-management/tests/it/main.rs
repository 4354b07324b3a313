//! Tests of tenants, members, applications and sessions over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod applications;
mod members;
mod sessions;
mod tenants;
