//! The vault through its front door: real PostgreSQL, real HTTP, one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells its figures on its output"
)]

mod access;
mod applications;
mod attacks;
mod bins;
mod cards;
mod client_keys;
mod conventions;
mod create;
mod deduplication;
mod deprecations;
mod documents;
mod doors;
mod enrichments;
mod erasures;
mod expiry;
mod formulas;
mod idempotency;
mod ids;
mod intents;
mod isolation;
mod keys;
mod lists;
mod logs;
mod members;
mod rate_limits;
mod searches;
mod security_codes;
mod sessions;
mod storage;
mod support;
mod tenants;
mod threeds;
mod together;
mod tokens;
mod updates;
mod velocity;
