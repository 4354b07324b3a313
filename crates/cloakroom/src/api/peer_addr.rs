//! Where a request came from.

use std::net::SocketAddr;

/// The address that a connection came from. Found in the extensions of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddr(pub SocketAddr);
