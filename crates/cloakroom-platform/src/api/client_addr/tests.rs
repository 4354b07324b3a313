//! Tests of addresses behind proxies.

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
        // No proxy.
        ("192.0.2.1", &[], "192.0.2.1"),
        ("10.0.0.1", &[], "10.0.0.1"),
        // The header of an untrusted peer is ignored.
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
        // Only trusted addresses.
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
        // Parsing stops at an invalid entry; the last valid address is returned.
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
