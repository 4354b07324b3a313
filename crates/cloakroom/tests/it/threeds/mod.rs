//! 3-D Secure from end to end: real messages over mutual TLS, pages followed as a browser would, and
//! simulated card networks at the other end.

mod caller;
mod cards;
mod checkout;
mod creating;
mod fields;
mod hosted;
mod lifetimes;
mod page;
mod purposes;
mod ranges;
mod requests;
mod results;
mod secrets;
mod trouble;
mod vendor;
