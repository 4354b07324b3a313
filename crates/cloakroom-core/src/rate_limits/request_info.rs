//! Attributes of a request that limits match on.

use std::net::IpAddr;
use std::sync::Arc;

use uuid::Uuid;

use crate::access::{ApplicationKind, RateLimit, TenantKind};

/// A request as rate limits see it.
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo<'a> {
    pub method: &'a str,
    /// Route template, such as `/tokens/{id}`.
    pub route: &'a str,
    pub address: IpAddr,
    /// `None` unless the request has a valid key.
    pub key: Option<KeyInfo>,
    /// The proxy that is called without an API key, by its own key or hostname.
    pub proxy: Option<(Proxy, &'a str)>,
}

/// Attributes of the API key.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Id of the API key or session.
    pub id: Uuid,
    pub tenant: TenantKind,
    pub application: ApplicationKind,
    pub is_legacy: bool,
    pub rate_limit: RateLimit,
}

/// How a proxy is called without an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// With its own key: unauthenticated or white-label.
    Open,
    /// On a hostname of the customer.
    Hostname,
}

/// The key of the proxy that a request invokes without an API key. An extension of the request.
#[derive(Clone, Debug)]
pub struct OpenProxyKey(pub Arc<str>);

impl Proxy {
    pub const ALL: [Self; 2] = [Self::Open, Self::Hostname];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Hostname => "hostname",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Open => "proxies without authentication",
            Self::Hostname => "proxies with a hostname",
        }
    }
}
