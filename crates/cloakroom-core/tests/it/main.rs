//! Tests of authentication, access, rate limits, velocity, idempotency, keys and the audit log over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod access;
mod deprecations;
mod idempotency;
mod keys;
mod logs;
mod rate_limits;
mod velocity;
