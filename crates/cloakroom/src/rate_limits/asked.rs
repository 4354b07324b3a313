//! What limits look at in a request.

use std::net::IpAddr;

use uuid::Uuid;

use crate::access::{ApplicationKind, RateLimit, TenantKind};

/// A request as limits see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub method: &'a str,
    /// The template of its route, such as `/tokens/{id}`.
    pub route: &'a str,
    pub address: IpAddr,
    /// Nothing as long as no valid key is known.
    pub key: Option<AskedKey>,
    /// The proxy that it goes through without a key of its own, by its key or hostname.
    pub proxy: Option<(Proxy, &'a str)>,
}

/// What is known of the key.
#[derive(Clone, Copy, Debug)]
pub struct AskedKey {
    /// The API key, or the session.
    pub id: Uuid,
    pub tenant: TenantKind,
    pub application: ApplicationKind,
    pub is_legacy: bool,
    pub rate_limit: RateLimit,
}

/// How a proxy is called without an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// By its own key: unauthenticated or white-label.
    Open,
    /// By a hostname of the customer.
    Hostname,
}

impl Proxy {
    pub const ALL: [Self; 2] = [Self::Open, Self::Hostname];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Hostname => "hostname",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Open => "proxies without authentication",
            Self::Hostname => "proxies with a hostname",
        }
    }
}
