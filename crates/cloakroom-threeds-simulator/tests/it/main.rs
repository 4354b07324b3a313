//! The simulator as a 3DS Server and a browser meet it: real messages, real mutual TLS, real forms.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod challenges;
mod control;
mod decoupled;
mod ranges;
mod stand_in;
mod vendor;
