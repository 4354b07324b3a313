//! Where a request came from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use rustls_pki_types::CertificateDer;

use crate::config::Networks;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a client. Found in the extensions of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAddr(pub IpAddr);

/// The certificates that a client has shown over mutual TLS, its own first. Found in the extensions of a
/// request; the authorities that a listener trusts have issued them.
#[derive(Clone, Debug, Default)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

impl ClientAddr {
    /// The peer of the connection, or who a trusted proxy says it forwards for.
    ///
    /// Each proxy adds the address that it heard from at the end of the list, so the list is read from
    /// there, for as long as the one who added an entry is trusted. What comes before that, clients may
    /// have written themselves. An entry that is no address ends the walk at the last one that was.
    pub fn find(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> Self {
        let mut address = peer.to_canonical();
        let lines = headers.get_all(FORWARDED_FOR).iter();
        let lines: Vec<&[u8]> = lines.map(|line| line.as_bytes()).collect();
        let entries = lines
            .iter()
            .rev()
            .flat_map(|line| line.rsplit(|byte| *byte == b','));
        for entry in entries {
            if !trusted.contain(address) {
                break;
            }
            match read(entry) {
                Some(before) => address = before,
                None => break,
            }
        }
        Self(address)
    }
}

/// An address as proxies write it: bare, in brackets, or with a port.
fn read(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    address
        .or_else(with_port)
        .map(|address| address.to_canonical())
}

/// Whose requests are counted together: an address, or the network of one of the newer kind, because
/// whoever has one of those has the whole network.
pub fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            format!("{}/64", Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::config::Config;

    fn found(peer: &str, lines: &[&[u8]]) -> String {
        let mut config = Config::default();
        config.http.trusted_proxies = "10.0.0.0/8, 2001:db8:1::/48".parse().unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        let trusted = &config.http.trusted_proxies;
        ClientAddr::find(peer.parse().unwrap(), &headers, trusted)
            .0
            .to_string()
    }

    #[test]
    fn the_rightmost_address_that_is_not_a_trusted_proxy_counts() {
        let cases: &[(&str, &[&[u8]], &str)] = &[
            // Nobody in between.
            ("192.0.2.1", &[], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            // A stranger says what it likes.
            ("192.0.2.1", &[b"203.0.113.5"], "192.0.2.1"),
            ("192.0.2.1", &[b"10.0.0.1"], "192.0.2.1"),
            ("2001:db8:2::1", &[b"203.0.113.5"], "2001:db8:2::1"),
            // One proxy, and several.
            ("10.0.0.1", &[b"203.0.113.5"], "203.0.113.5"),
            ("10.0.0.1", &[b"203.0.113.5, 10.0.0.2"], "203.0.113.5"),
            (
                "10.0.0.1",
                &[b"203.0.113.5,10.0.0.2,10.0.0.3"],
                "203.0.113.5",
            ),
            // The client forged entries before it reached the first proxy.
            ("10.0.0.1", &[b"198.51.100.7, 203.0.113.5"], "203.0.113.5"),
            (
                "10.0.0.1",
                &[b"10.9.9.9, 203.0.113.5, 10.0.0.2"],
                "203.0.113.5",
            ),
            // Several lines are one list.
            (
                "10.0.0.1",
                &[b"198.51.100.7", b"203.0.113.5"],
                "203.0.113.5",
            ),
            (
                "10.0.0.1",
                &[b"198.51.100.7, 203.0.113.5", b"10.0.0.2"],
                "203.0.113.5",
            ),
            // All the way inside.
            ("10.0.0.1", &[b"10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            // IPv6, mapped IPv4, ports and brackets.
            ("2001:db8:1::1", &[b"2001:db8:2::9"], "2001:db8:2::9"),
            ("10.0.0.1", &[b"[2001:db8:2::9]:443"], "2001:db8:2::9"),
            ("10.0.0.1", &[b"[2001:db8:2::9]"], "2001:db8:2::9"),
            ("10.0.0.1", &[b"203.0.113.5:50123"], "203.0.113.5"),
            ("::ffff:10.0.0.1", &[b"::ffff:203.0.113.5"], "203.0.113.5"),
            (
                "10.0.0.1",
                &[b"203.0.113.5, ::ffff:10.0.0.2"],
                "203.0.113.5",
            ),
            // What is no address ends the walk at the last proxy that is known.
            ("10.0.0.1", &[b"unknown"], "10.0.0.1"),
            ("10.0.0.1", &[b""], "10.0.0.1"),
            ("10.0.0.1", &[b"203.0.113.5, , 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[b"203.0.113.5, _hidden, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[b"203.0.113.5, \xff"], "10.0.0.1"),
            ("10.0.0.1", &[b"203.0.113.5:99999"], "10.0.0.1"),
            ("10.0.0.1", &[b"203.0.113.5 203.0.113.6"], "10.0.0.1"),
            ("10.0.0.1", &[b"fe80::1%eth0"], "10.0.0.1"),
        ];
        for (peer, lines, expected) in cases {
            assert_eq!(found(peer, lines), *expected, "{peer} {lines:?}");
        }
    }
}
