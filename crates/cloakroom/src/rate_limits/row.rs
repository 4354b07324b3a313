//! One limit: what it applies to, what it counts apart, how many, and what happens beyond.

use std::fmt;
use std::time::Duration;

use super::asked::{Asked, AskedKey, Proxy};
use super::route::Route;
use crate::access::{ApplicationKind, RateLimit, TenantKind};

/// A row of the table of limits. What its scope leaves open is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub(super) tenant: Option<TenantKind>,
    pub(super) application: Option<ApplicationKind>,
    pub(super) only_legacy_keys: bool,
    pub(super) proxy: Option<Proxy>,
    pub(super) routes: Vec<Route>,
    pub counted: Counted,
    pub requests: u64,
    pub window: Duration,
    pub action: Action,
}

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    KeyAndIp,
    /// Two counters, each by itself.
    KeyOrIp,
    Key,
    Ip,
    ProxyAndIp,
    HostnameAndIp,
}

/// What happens to a request too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is refused until the window has room.
    Throttle,
    /// It is refused, and everything after it for this time.
    Block(Duration),
}

impl Row {
    /// Why the limit does not apply to a request, or nothing if it does.
    pub fn objection(&self, asked: &Asked<'_>) -> Option<&'static str> {
        if !self.routes.is_empty() && !self.routes.iter().any(|route| route.leads(asked)) {
            return Some("not one of its routes");
        }
        if let Some(proxy) = self.proxy
            && asked.proxy.is_none_or(|(kind, _)| kind != proxy)
        {
            return Some("not through such a proxy");
        }
        let Some(key) = &asked.key else {
            return self.needs_key().then_some("no key");
        };
        self.objection_to_key(key)
    }

    fn objection_to_key(&self, key: &AskedKey) -> Option<&'static str> {
        if self.tenant.is_some_and(|kind| kind != key.tenant) {
            return Some("another type of tenant");
        }
        if self.application.is_some_and(|kind| kind != key.application) {
            return Some("another type of application");
        }
        if self.only_legacy_keys && !key.is_legacy {
            return Some("not a legacy key");
        }
        let is_unlimited = key.rate_limit == RateLimit::Unlimited;
        (is_unlimited && !self.counted.has_address_alone()).then_some("the tenant is unlimited")
    }

    fn needs_key(&self) -> bool {
        self.tenant.is_some()
            || self.application.is_some()
            || self.only_legacy_keys
            || self.counted.needs_key()
    }

    /// What it applies to, in words.
    pub fn scope(&self) -> String {
        let mut parts = Vec::new();
        if let Some(kind) = self.tenant {
            parts.push(format!("{} tenants", kind.name()));
        }
        if let Some(kind) = self.application {
            parts.push(format!("{kind} applications"));
        }
        if self.only_legacy_keys {
            parts.push("legacy keys".to_owned());
        }
        if let Some(proxy) = self.proxy {
            parts.push(proxy.words().to_owned());
        }
        if !self.routes.is_empty() {
            let routes: Vec<String> = self.routes.iter().map(Route::to_string).collect();
            parts.push(routes.join(", "));
        }
        match parts.is_empty() {
            true => "everything".to_owned(),
            false => parts.join("; "),
        }
    }

    /// How many requests it allows, by the quota of the tenant. Addresses belong to no tenant.
    pub(super) fn limit_for(&self, asked: &Asked<'_>) -> u64 {
        match &asked.key {
            Some(key) if self.counted != Counted::Ip => key.rate_limit.applied_to(self.requests),
            _ => self.requests,
        }
    }
}

impl Counted {
    pub const ALL: [Self; 6] = [
        Self::KeyAndIp,
        Self::KeyOrIp,
        Self::Key,
        Self::Ip,
        Self::ProxyAndIp,
        Self::HostnameAndIp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::KeyAndIp => "key and ip",
            Self::KeyOrIp => "key or ip",
            Self::Key => "key",
            Self::Ip => "ip",
            Self::ProxyAndIp => "proxy and ip",
            Self::HostnameAndIp => "hostname and ip",
        }
    }

    fn needs_key(self) -> bool {
        matches!(self, Self::KeyAndIp | Self::KeyOrIp | Self::Key)
    }

    /// Whether one of its counters belongs to an address, and so to no tenant.
    fn has_address_alone(self) -> bool {
        matches!(self, Self::Ip | Self::KeyOrIp)
    }

    /// The proxy without which there is nothing to count by.
    pub(super) fn needed_proxy(self) -> Option<Proxy> {
        match self {
            Self::ProxyAndIp => Some(Proxy::Open),
            Self::HostnameAndIp => Some(Proxy::Hostname),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttle => f.write_str("throttle"),
            Self::Block(time) => write!(f, "block {}", written(*time)),
        }
    }
}

/// A time as the table has it: `10s`, `1m`, `250ms`.
pub fn written(time: Duration) -> String {
    match (time.as_millis(), time.as_secs()) {
        (millis, _) if millis % 1_000 > 0 => format!("{millis}ms"),
        (_, seconds) if seconds > 0 && seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (_, seconds) if seconds > 0 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        (_, seconds) => format!("{seconds}s"),
    }
}
