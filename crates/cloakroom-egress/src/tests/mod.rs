//! Tests against real TLS servers on loopback.

mod harness;

mod breaker;
mod connect_proxy;
mod limits;
mod pool;
mod responses;
mod ssrf;
mod streaming;
mod tls;
