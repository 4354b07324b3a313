//! Which IP addresses a destination may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloakroom_platform::config::Networks;

/// Why an address is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    Unspecified,
    Loopback,
    Private,
    LinkLocal,
    /// Carrier-grade NAT, 100.64.0.0/10.
    SharedNat,
    /// A metadata service of a cloud, which hands out credentials.
    Metadata,
    Multicast,
    /// Documentation, benchmarking, protocol assignments and unassigned ranges.
    Reserved,
    /// An IPv6 address that contains an IPv4 address: mapped, NAT64, 6to4, Teredo or ISATAP.
    Embedded,
}

/// Metadata services. The one of Azure is public by its number, but served by the host of a virtual machine.
const METADATA: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254)),
];

/// Rejects addresses that are not public, unless the operator exempted them.
///
/// An exemption of a network does not include metadata services: those must be listed as single addresses.
pub(crate) fn check(address: IpAddr, exempt: &Networks) -> Result<(), AddressClass> {
    let Some(class) = class(address) else {
        return Ok(());
    };
    let is_exempt = match class {
        AddressClass::Metadata => exempt.list(address),
        _ => exempt.contain(address),
    };
    if is_exempt { Ok(()) } else { Err(class) }
}

/// The class of an address that is not public.
fn class(address: IpAddr) -> Option<AddressClass> {
    if METADATA.contains(&address.to_canonical()) {
        return Some(AddressClass::Metadata);
    }
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Option<AddressClass> {
    Some(match address.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [100, 64..=127, ..] => AddressClass::SharedNat,
        [224..=239, ..] => AddressClass::Multicast,
        // Protocol assignments, documentation, AS112, AMT, 6to4 relays, benchmarking.
        [192, 0, 0 | 2, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 88, 99, _]
        | [192, 175, 48, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => AddressClass::Reserved,
        _ => return None,
    })
}

fn class_v6(address: Ipv6Addr) -> Option<AddressClass> {
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Mapped, translated and compatible; NAT64, well-known and local; Teredo; 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0, 0, 0, 0, 0, 0, ..]
        | [0x0064, 0xff9b, ..]
        | [0x2001, 0, ..]
        | [0x2002, ..]
        // ISATAP, with a local or a global IPv4 address.
        | [_, _, _, _, 0 | 0x0200, 0x5efe, ..] => AddressClass::Embedded,
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        // Link-local, and site-local, which is deprecated.
        [0xfe80..=0xfeff, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // Protocol assignments, among them benchmarking and ORCHID; documentation.
        [0x2001, 0x0001..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => return None,
        // Outside of the only block of global unicast addresses.
        _ => AddressClass::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::AddressClass::*;
    use super::*;

    fn assert_classes(cases: &[(&str, Option<AddressClass>)]) {
        for (text, expected) in cases {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(class(address), *expected, "{text}");
        }
    }

    #[test]
    fn ipv4_addresses_that_are_not_public_have_a_class() {
        assert_classes(&[
            ("0.0.0.0", Some(Unspecified)),
            ("0.255.0.1", Some(Unspecified)),
            ("1.0.0.0", None),
            ("9.255.255.255", None),
            ("10.0.0.0", Some(Private)),
            ("10.255.255.255", Some(Private)),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.64.0.0", Some(SharedNat)),
            ("100.127.255.255", Some(SharedNat)),
            ("100.128.0.0", None),
            ("100.100.100.200", Some(Metadata)),
            ("126.255.255.255", None),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.255", Some(Loopback)),
            ("128.0.0.0", None),
            ("168.63.129.16", Some(Metadata)),
            ("169.253.255.255", None),
            ("169.254.0.1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("169.254.170.2", Some(Metadata)),
            ("169.255.0.0", None),
            ("172.15.255.255", None),
            ("172.16.0.0", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("172.32.0.0", None),
            ("192.0.0.1", Some(Reserved)),
            ("192.0.0.192", Some(Metadata)),
            ("192.0.1.1", None),
            ("192.0.2.1", Some(Reserved)),
            ("192.31.196.1", Some(Reserved)),
            ("192.52.193.1", Some(Reserved)),
            ("192.88.99.1", Some(Reserved)),
            ("192.167.255.255", None),
            ("192.168.0.1", Some(Private)),
            ("192.169.0.0", None),
            ("192.175.48.1", Some(Reserved)),
            ("198.17.255.255", None),
            ("198.18.0.1", Some(Reserved)),
            ("198.19.255.255", Some(Reserved)),
            ("198.20.0.0", None),
            ("198.51.100.1", Some(Reserved)),
            ("203.0.113.1", Some(Reserved)),
            ("223.255.255.255", None),
            ("224.0.0.1", Some(Multicast)),
            ("239.255.255.255", Some(Multicast)),
            ("240.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
        ]);
    }

    #[test]
    fn ipv6_addresses_that_are_not_public_have_a_class() {
        assert_classes(&[
            ("::", Some(Unspecified)),
            ("::1", Some(Loopback)),
            ("::2", Some(Embedded)),
            ("::7f00:1", Some(Embedded)),
            ("::808:808", Some(Embedded)),
            ("::ffff:8.8.8.8", Some(Embedded)),
            ("::ffff:127.0.0.1", Some(Embedded)),
            ("::ffff:169.254.169.254", Some(Metadata)),
            ("::ffff:0:127.0.0.1", Some(Embedded)),
            ("64:ff9b::127.0.0.1", Some(Embedded)),
            ("64:ff9b::8.8.8.8", Some(Embedded)),
            ("64:ff9b:1::1", Some(Embedded)),
            ("100::1", Some(Reserved)),
            ("1fff::1", Some(Reserved)),
            ("2000::1", None),
            ("2001::1", Some(Embedded)),
            ("2001:2::1", Some(Reserved)),
            ("2001:10::1", Some(Reserved)),
            ("2001:20::1", Some(Reserved)),
            ("2001:1ff::1", Some(Reserved)),
            ("2001:200::1", None),
            ("2001:4860:4860::8888", None),
            ("2001:db8::1", Some(Reserved)),
            ("2002:7f00:1::", Some(Embedded)),
            ("2002:808:808::", Some(Embedded)),
            ("2a00:1450::5efe:7f00:1", Some(Embedded)),
            ("2a00:1450::200:5efe:808:808", Some(Embedded)),
            ("2606:4700::1111", None),
            ("3fff::1", Some(Reserved)),
            ("3fff:1000::1", None),
            ("4000::1", Some(Reserved)),
            ("5f00::1", Some(Reserved)),
            ("fc00::1", Some(Private)),
            ("fd00:ec2::254", Some(Metadata)),
            ("fd20:ce::254", Some(Metadata)),
            ("fe80::1", Some(LinkLocal)),
            ("febf::1", Some(LinkLocal)),
            ("fec0::1", Some(LinkLocal)),
            ("ff02::1", Some(Multicast)),
        ]);
    }

    #[test]
    fn metadata_services_are_exempt_only_by_their_own_address() {
        let wide: Networks = "127.0.0.0/8,169.254.0.0/16,fd00::/8,10.0.0.0/8"
            .parse()
            .unwrap();
        for (text, expected) in [
            ("127.0.0.1", Ok(())),
            ("10.0.0.7", Ok(())),
            ("169.254.1.1", Ok(())),
            ("fd12::1", Ok(())),
            ("::ffff:10.0.0.7", Ok(())),
            ("169.254.169.254", Err(Metadata)),
            ("::ffff:169.254.169.254", Err(Metadata)),
            ("fd00:ec2::254", Err(Metadata)),
            ("64:ff9b::10.0.0.7", Err(Embedded)),
            ("192.168.0.1", Err(Private)),
            ("8.8.8.8", Ok(())),
        ] {
            assert_eq!(check(text.parse().unwrap(), &wide), expected, "{text}");
        }
        let single: Networks = "169.254.169.254/32,fd00:ec2::254".parse().unwrap();
        assert_eq!(check([169, 254, 169, 254].into(), &single), Ok(()));
        assert_eq!(check("fd00:ec2::254".parse().unwrap(), &single), Ok(()));
    }
}
