//! The IP address of a client, behind trusted proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Once};

use http::{HeaderMap, HeaderName};
use rustls_pki_types::CertificateDer;

use crate::config::Networks;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The IP address of a client. An extension of the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAddr(pub IpAddr);

/// The certificate chain that a client presented over mutual TLS, its own certificate first. An extension of the
/// request. The chain is verified against the authorities that the listener trusts.
#[derive(Clone, Debug, Default)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

impl ClientAddr {
    /// Returns the peer of the connection, or the client in `X-Forwarded-For` if the peer is a trusted proxy.
    ///
    /// Each proxy appends the address of its peer, so the list is read from the end, as long as the proxy that added an
    /// entry is trusted. Clients can forge all earlier entries. Parsing stops at an entry that is not an address, and
    /// the last valid one is returned.
    pub fn find(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> Self {
        let mut address = peer.to_canonical();
        let lines = headers.get_all(FORWARDED_FOR).iter();
        let lines: Vec<&[u8]> = lines.map(|line| line.as_bytes()).collect();
        let entries = lines
            .iter()
            .rev()
            .flat_map(|line| line.rsplit(|byte| *byte == b','));
        if !lines.is_empty() && !trusted.contain(address) {
            report_unlisted(address);
        }
        for entry in entries {
            if !trusted.contain(address) {
                break;
            }
            match parse_entry(entry) {
                Some(before) => address = before,
                None => break,
            }
        }
        Self(address)
    }
}

/// Warns once of what may be a proxy that is not listed: all of its clients then share one address, and one of them can
/// have all others limited or blocked. Clients can send the header, too.
fn report_unlisted(peer: IpAddr) {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        tracing::warn!(
            error.kind = "unlisted_proxy",
            client.address = %peer,
            "a peer sent X-Forwarded-For, but is not in http.trusted_proxies; if it is your proxy, list it, because limits, \
             blocks and audit entries take all of its clients for one address until then"
        );
    });
}

/// Parses an address as proxies write it: plain, in brackets, or with a port.
fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
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

/// Formats [`network_address`] of an address, an IPv6 network with its prefix length.
pub fn network_of(address: IpAddr) -> String {
    match network_address(address) {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(network) => format!("{network}/64"),
    }
}

/// Returns the address that rate limits count by: an IPv4 address, or the first one of the IPv6 /64 network, because a
/// client usually controls all addresses of its /64.
pub fn network_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests;
