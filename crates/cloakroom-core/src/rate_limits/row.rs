//! One limit: its scope, counter, number of requests and action.

use std::fmt;
use std::time::Duration;

use super::request_info::{KeyInfo, Proxy, RequestInfo};
use super::route::Route;
use crate::access::{ApplicationKind, RateLimit, TenantKind};

/// A row of the limit table. A scope that is not set matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub(super) tenant: Option<TenantKind>,
    pub(super) application: Option<ApplicationKind>,
    pub(super) exempts_private: bool,
    /// Whether it is a row of the built-in table with the profile `standard`.
    pub(super) is_standard: bool,
    pub(super) only_legacy_keys: bool,
    pub(super) proxy: Option<Proxy>,
    pub(super) routes: Vec<Route>,
    pub counted: CounterKind,
    pub requests: u64,
    pub window: Duration,
    pub action: Action,
}

/// What requests are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    KeyAndIp,
    /// Two independent counters.
    KeyOrIp,
    Key,
    Ip,
    ProxyAndIp,
    HostnameAndIp,
}

/// What happens to requests beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Rejects them until the window has capacity.
    Throttle,
    /// Rejects them and all that follow for this time.
    Block(Duration),
}

impl Row {
    /// Why the limit does not apply to a request; `None` if it does.
    pub fn objection(&self, info: &RequestInfo<'_>) -> Option<&'static str> {
        if !self.routes.is_empty() && !self.routes.iter().any(|route| route.matches(info)) {
            return Some("not one of its routes");
        }
        if let Some(proxy) = self.proxy
            && info.proxy.is_none_or(|(kind, _)| kind != proxy)
        {
            return Some("not called through such a proxy");
        }
        let Some(key) = &info.key else {
            return self.needs_key().then_some("no key");
        };
        self.objection_to_key(key)
    }

    fn objection_to_key(&self, key: &KeyInfo) -> Option<&'static str> {
        if self.tenant.is_some_and(|kind| kind != key.tenant) {
            return Some("another type of tenant");
        }
        if self.application.is_some_and(|kind| kind != key.application) {
            return Some("another type of application");
        }
        if self.exempts_private && key.application == ApplicationKind::Private {
            return Some("limits.profile exempts private applications");
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

    /// Whether it counts every request by address, with a key or without.
    pub(super) fn counts_all_of_an_address(&self) -> bool {
        self.counted == CounterKind::Ip && self.routes.is_empty() && !self.needs_key()
    }

    /// Whether the profile `own-hardware` would exempt the request from this limit.
    pub(super) fn is_profile_choice(&self, info: &RequestInfo<'_>) -> bool {
        let is_private = |key: &KeyInfo| key.application == ApplicationKind::Private;
        let exempts = info.key.as_ref().is_some_and(is_private) || self.counts_all_of_an_address();
        self.is_standard && exempts
    }

    /// Description of the scope.
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
            parts.push(proxy.description().to_owned());
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

    /// Number of requests it allows, by the quota of the tenant. Addresses belong to no tenant.
    pub(super) fn limit_for(&self, info: &RequestInfo<'_>) -> u64 {
        match &info.key {
            Some(key) if self.counted != CounterKind::Ip => {
                key.rate_limit.applied_to(self.requests)
            }
            _ => self.requests,
        }
    }
}

impl CounterKind {
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

    /// Whether one of its counters is by address alone, and so belongs to no tenant.
    fn has_address_alone(self) -> bool {
        matches!(self, Self::Ip | Self::KeyOrIp)
    }

    /// The kind of proxy that this counter requires.
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

/// A duration in the syntax of the table: `10s`, `1m`, `250ms`.
pub fn written(time: Duration) -> String {
    match (time.as_millis(), time.as_secs()) {
        (millis, _) if millis % 1_000 > 0 => format!("{millis}ms"),
        (_, seconds) if seconds > 0 && seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (_, seconds) if seconds > 0 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        (_, seconds) => format!("{seconds}s"),
    }
}
