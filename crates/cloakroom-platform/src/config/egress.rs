//! Settings of outbound requests to hosts that tenants choose.

use std::net::IpAddr;
use std::path::PathBuf;

use http::Uri;

use super::Secret;
use super::finding::Finding;
use super::network::Networks;
use super::section::section;
use super::setting::Setting;
use crate::egress_hosts::{HostList, is_dns_name};

section! {
    /// Outbound requests to hosts that tenants choose: destinations of proxies and endpoints of webhooks.
    /// docs/operate/egress.md explains how to allow a destination.
    pub struct Egress in "egress" {
        /// Hosts that tenants may send requests to, such as `api.example.com`, `*.example.com` for its subdomains, or
        /// `*` for all. If unset: none in production, all hosts with public addresses in test. A tenant can restrict
        /// itself further with its setting `egress_hosts`.
        pub allowed_hosts: Option<HostList> = None,
        /// Ports of destinations.
        pub ports: Ports = Ports(vec![443]),
        /// Networks with private addresses that destinations may have, for processors inside your network. Addresses
        /// of cloud metadata services are allowed only if they are listed one by one.
        pub allow_private_networks: Networks = Networks::default(),
        /// Addresses of hosts that are not resolved by DNS, such as `psp.internal.example=10.0.0.7`. They are checked
        /// like resolved addresses.
        pub static_addresses: StaticAddresses = StaticAddresses(Vec::new()),
        /// PEM file with certificate authorities to trust for every destination, in addition to those of the operating
        /// system.
        pub ca_file: Option<PathBuf> = None,
        /// TOML file with certificate authorities and client certificates per destination.
        pub destinations_file: Option<PathBuf> = None,
        /// HTTP proxy that outbound connections go through, such as `http://user:password@proxy.example.com:3128`.
        /// Hosts are still resolved and checked by this node; the CONNECT request has the address.
        pub connect_proxy: Option<Secret> = None,
        /// File with the value of `connect_proxy`.
        pub connect_proxy_file: Option<PathBuf> = None,
        /// Requests in flight at a time on this node. Each occupies a connection and its file descriptor.
        pub max_in_flight: usize = 16_384,
        /// Requests in flight at a time to one destination. One tenant may have three quarters of either number.
        pub max_in_flight_per_destination: usize = 512,
        /// Idle connections that stay open for one tenant and destination.
        pub max_idle_per_destination: usize = 64,
    }
}

impl Egress {
    /// Reads secrets from their files.
    pub(super) fn resolve(&mut self, findings: &mut Vec<Finding>) {
        let file = self.connect_proxy_file.as_deref();
        Secret::resolve(
            "egress.connect_proxy",
            &mut self.connect_proxy,
            file,
            findings,
        );
    }

    pub(super) fn check(&self, is_production: bool, findings: &mut Vec<Finding>) {
        let proxy = self.connect_proxy.as_ref();
        if !proxy.is_none_or(|proxy| is_proxy_url(proxy.reveal())) {
            let message = "must be an http URL with host and port and without a path, such as \
                           http://proxy.example.com:3128";
            findings.push(Finding::error("egress.connect_proxy", message));
        }
        if self.max_in_flight_per_destination > self.max_in_flight {
            let message = "must be at most egress.max_in_flight";
            let setting = "egress.max_in_flight_per_destination";
            findings.push(Finding::error(setting, message));
        }
        let allows_any = self
            .allowed_hosts
            .as_ref()
            .is_some_and(HostList::allows_any);
        if allows_any && !self.allow_private_networks.is_empty() {
            let message = "every tenant can send requests to every host in these networks, because egress.allowed_hosts is \
                           `*`: list the hosts";
            let setting = "egress.allow_private_networks";
            findings.push(match is_production {
                true => Finding::error(setting, message),
                false => Finding::warning(setting, message),
            });
        }
        if is_production && allows_any {
            let message =
                "tenants can send card data to any public host: list the hosts of your processors";
            findings.push(Finding::warning("egress.allowed_hosts", message));
        }
    }
}

fn is_proxy_url(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| {
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        uri.scheme_str() == Some("http")
            && has_host
            && uri.port_u16().is_some()
            && uri.path() == "/"
            && uri.query().is_none()
    })
}

/// A list of TCP ports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ports(Vec<u16>);

impl Ports {
    pub fn new(ports: Vec<u16>) -> Self {
        Self(ports)
    }

    pub fn contain(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

impl Setting for Ports {
    const IS_LIST: bool = true;

    fn kind() -> String {
        "list of ports".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let ports: Result<Vec<u16>, _> = text.split(',').map(|port| port.trim().parse()).collect();
        match ports {
            Ok(ports) if !ports.contains(&0) => Ok(Self(ports)),
            _ => Err("must be a list of ports from 1 to 65535".to_owned()),
        }
    }

    fn text(&self) -> Option<String> {
        let ports: Vec<String> = self.0.iter().map(u16::to_string).collect();
        Some(ports.join(","))
    }
}

/// Hosts with fixed addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StaticAddresses(Vec<(String, IpAddr)>);

impl StaticAddresses {
    pub fn new(addresses: Vec<(String, IpAddr)>) -> Self {
        Self(addresses)
    }

    /// The addresses of a host; none if it is resolved by DNS.
    pub fn of(&self, host: &str) -> Vec<IpAddr> {
        let of_host = self.0.iter().filter(|(name, _)| name == host);
        of_host.map(|(_, address)| *address).collect()
    }
}

impl Setting for StaticAddresses {
    const IS_LIST: bool = true;

    fn kind() -> String {
        "list of host=address".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let rule =
            || "must be DNS names with addresses, such as psp.example.com=10.0.0.7".to_owned();
        let pairs = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty());
        let parse = |pair: &str| {
            let (host, address) = pair.split_once('=')?;
            let host = host.trim().to_ascii_lowercase();
            let address = address.trim().parse().ok()?;
            is_dns_name(&host).then_some((host, address))
        };
        let pairs: Option<Vec<_>> = pairs.map(parse).collect();
        pairs.map(Self).ok_or_else(rule)
    }

    fn text(&self) -> Option<String> {
        let pairs = self
            .0
            .iter()
            .map(|(host, address)| format!("{host}={address}"));
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join(","))
    }
}

impl Setting for HostList {
    const IS_LIST: bool = true;

    fn kind() -> String {
        "list of hosts".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(str::to_owned)
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_from_1_to_65535() {
        assert_eq!(Ports::parse("443, 8443"), Ok(Ports(vec![443, 8443])));
        for text in ["", "0", "65536", "443,", "https", "-1"] {
            assert!(Ports::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn static_addresses_have_a_dns_name() {
        let text = "a.example=10.0.0.7, A.example = ::1,b.example=192.0.2.1";
        let addresses = StaticAddresses::parse(text).unwrap();
        let expected: [IpAddr; 2] = [[10, 0, 0, 7].into(), "::1".parse().unwrap()];
        assert_eq!(addresses.of("a.example"), expected);
        assert_eq!(addresses.of("c.example"), [] as [IpAddr; 0]);
        for text in [
            "a.example",
            "a.example=",
            "=10.0.0.7",
            "10.0.0.7=10.0.0.7",
            "a.example=b.example",
        ] {
            assert!(StaticAddresses::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_connect_proxy_is_an_http_url_with_a_port() {
        for (url, expected) in [
            ("http://proxy.example:3128", true),
            ("http://user:p%40ss@proxy.example:3128/", true),
            ("http://10.0.0.1:3128", true),
            ("http://proxy.example", false),
            ("https://proxy.example:3128", false),
            ("http://proxy.example:3128/x", false),
            ("http://proxy.example:3128?x", false),
            ("proxy.example:3128", false),
        ] {
            assert_eq!(is_proxy_url(url), expected, "{url}");
        }
    }
}
