//! Tests of hosted pages over HTTP, against real PostgreSQL and Redis.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod pages;
