//! Tests of the simulator over mutual TLS and HTML forms, as a 3DS Server and a browser use it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod authentication;
mod challenges;
mod control;
mod decoupled;
mod harness;
mod method;
mod ranges;
mod vendor;
