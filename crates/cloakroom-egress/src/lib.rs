//! Requests to hosts that tenants choose: destinations of proxies and endpoints of webhooks.
//!
//! [`Egress::send`] is the only way out. Reading order: [`DestinationUrl`] (`url.rs`), allowlists and ports
//! (`policy.rs`), addresses (`address.rs`, `resolve.rs`), connections (`tls.rs`, `connect.rs`, `pool.rs`), limits
//! (`in_flight.rs`, `breaker.rs`), then the request (`send.rs`) and its response (`response.rs`).

mod address;
mod breaker;
mod connect;
mod connect_proxy;
mod connection;
mod destination_key;
mod failure;
mod in_flight;
mod policy;
mod pool;
mod request;
mod resolve;
mod response;
mod send;
mod tls;
mod url;

pub use cloakroom_platform::egress_hosts::HostList;

pub use self::address::AddressClass;
pub use self::failure::{Denied, Error, NotSent, SendError};
pub use self::response::{BodyError, ResponseBody};
pub use self::send::{Destination, Egress, Timeouts};
pub use self::url::{DestinationUrl, InvalidUrl};

#[cfg(test)]
mod tests;
