//! Requests to hosts that tenants choose: destinations of proxies and endpoints of webhooks.
//!
//! [`Egress::send`] is the only way out. Reading order: [`DestinationUrl`] (`url.rs`), allowlists and ports
//! (`policy.rs`), addresses (`address.rs`, `resolve.rs`), connections (`tls.rs`, `connect.rs`, `pool.rs`), limits
//! (`in_flight.rs`, `breaker.rs`), then the request (`send.rs`) and its response (`response.rs`).

mod address;
mod failure;
mod response;
mod send;
mod url;

pub use cloakroom_platform::egress_hosts::HostList;

pub use self::address::AddressClass;
pub use self::failure::{Denied, NotSent, SendError};
pub use self::response::{BodyError, ResponseBody};
pub use self::send::{Destination, Egress, Error, Timeouts};
pub use self::url::{DestinationUrl, InvalidUrl};
