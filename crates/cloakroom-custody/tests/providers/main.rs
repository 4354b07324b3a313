//! Every provider of the root key, against a real part or a server that speaks its protocol.

mod behavior;
mod kms;
mod kms_server;
mod pkcs11;
mod python;
mod relay;
mod shares;
mod transit;
mod transit_server;
