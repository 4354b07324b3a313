//! IP networks in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::setting::Setting;

/// A CIDR block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Network {
    first: IpAddr,
    bits: u8,
}

/// A list of networks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Networks(Vec<Network>);

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        masked(address, self.bits) == Some(self.first)
    }
}

impl Networks {
    /// Whether an address is in one of the networks. IPv4-mapped IPv6 addresses are matched as IPv4.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }

    /// Whether the address itself is listed, not only a network around it.
    pub fn list(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let whole = if address.is_ipv4() { 32 } else { 128 };
        self.0.contains(&Network {
            first: address,
            bits: whole,
        })
    }

    /// The first network with a shorter prefix than this.
    pub(super) fn wider_than(&self, bits: u8) -> Option<String> {
        let wide = self.0.iter().find(|network| network.bits < bits);
        wide.map(Network::to_string)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Clears all but the first `bits` bits; `None` if the address has fewer bits.
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    let bits = u32::from(bits);
    Some(match address {
        IpAddr::V4(address) => {
            let rest = u32::BITS.checked_sub(bits)?;
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let rest = u128::BITS.checked_sub(bits)?;
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    })
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || "must be networks such as 10.0.0.0/8, separated by commas".to_owned();
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(whole);
        let first = masked(address, bits).ok_or_else(invalid)?;
        if first != address {
            return Err(format!(
                "contains {text}, which has host bits set; use {first}/{bits}"
            ));
        }
        Ok(Self { first, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// As in the configuration.
impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks: Vec<String> = self.0.iter().map(Network::to_string).collect();
        f.write_str(&networks.join(", "))
    }
}

impl FromStr for Networks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Setting::parse(text)
    }
}

impl Setting for Networks {
    const IS_LIST: bool = true;

    fn kind() -> String {
        "networks".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let networks = text.split(',').map(str::trim);
        let networks = networks.filter(|network| !network.is_empty());
        networks.map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        let networks = Networks::parse("10.0.0.0/8, 192.0.2.7,2001:db8::/32, ::1").unwrap();
        let cases = [
            ("10.255.0.1", true),
            ("11.0.0.0", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:10.1.2.3", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::1", false),
            ("::1", true),
            ("::2", false),
        ];
        for (address, is_inside) in cases {
            assert_eq!(
                networks.contain(address.parse().unwrap()),
                is_inside,
                "{address}"
            );
        }
        let everyone = Networks::parse("0.0.0.0/0, ::/0").unwrap();
        assert!(everyone.contain([203, 0, 113, 9].into()));
        assert!(everyone.contain("2001:db8::1".parse().unwrap()));
        assert!(!Networks::default().contain([127, 0, 0, 1].into()));
        assert!(networks.list([192, 0, 2, 7].into()) && networks.list("::1".parse().unwrap()));
        assert!(!networks.list([10, 0, 0, 0].into()));
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in [
            "ten",
            "10.0.0.0/33",
            "10.0.0.0/",
            "::/129",
            "10.0.0.1/8",
            "10.0.0.0/-1",
        ] {
            assert!(Networks::parse(text).is_err(), "{text}");
        }
        let text = Networks::parse("10.0.0.0/8,::1").unwrap().text();
        assert_eq!(text.as_deref(), Some("10.0.0.0/8, ::1/128"));
        assert_eq!(Networks::parse("").unwrap(), Networks::default());
    }
}
