//! Tests of tokens, intents, queries and what their data needs over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod batching;
mod bins;
mod card_data;
mod cards;
mod client_keys;
mod deduplication;
mod disclosure;
mod documents;
mod enrichments;
mod expiry;
mod intents;
mod public_storage;
mod queries;
mod security_codes;
mod tokens;
