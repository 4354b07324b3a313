//! Every provider of the root key, against a real part or a server that speaks its protocol.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod behavior;
mod kms;
mod kms_server;
mod pkcs11;
mod python;
mod relay;
mod shares;
mod transit;
mod transit_server;
