//! Integration tests over HTTP, against real PostgreSQL and Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they measure"
)]

mod access;
mod adversary;
mod applications;
mod attacks;
mod authorization;
mod batching;
mod bins;
mod card_data;
mod cards;
mod client_keys;
mod conventions;
mod custody;
mod deduplication;
mod deprecations;
mod disclosure;
mod documents;
mod elements;
mod enrichments;
mod erasures;
mod expiry;
mod formulas;
mod guides;
mod idempotency;
mod intents;
mod isolation;
mod keys;
mod logs;
mod members;
mod pages;
mod proxies;
mod proxy;
mod queries;
mod rate_limits;
mod readiness;
mod rotation;
mod security_codes;
mod sessions;
mod storage;
mod support;
mod tenants;
mod threeds;
mod tokens;
mod transfer;
mod velocity;
mod webhooks;
