//! 3-D Secure end to end: real messages over mutual TLS, pages followed like a browser does, and simulated card
//! networks.

mod callbacks;
mod cards;
mod checkout;
mod create;
mod declines;
mod errors;
mod field_values;
mod fields;
mod form;
mod hosted;
mod lifetimes;
mod networks;
mod purposes;
mod ranges;
mod requests;
mod results;
mod retention;
mod secrets;
mod tls_client;
mod update;
mod vendor;
