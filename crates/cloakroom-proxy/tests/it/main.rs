//! Tests of the proxy and pre-configured proxies over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod proxies;
mod proxy;
