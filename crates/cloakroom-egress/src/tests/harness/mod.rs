//! Certificates, servers and clients for the tests.

mod authority;
mod client;
mod server;

pub(super) use self::authority::{Authority, Leaf};
pub(super) use self::client::{Client, TENANT, body_text, empty, tenant};
pub(super) use self::server::{Server, ServerTls, read_head, respond};
