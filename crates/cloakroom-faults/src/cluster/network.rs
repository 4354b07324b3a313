//! Network namespaces on a bridge, whose links can be partitioned and healed.

use anyhow::{Context, Result, bail};

use super::command::run;

/// No machine has this address: frames to it are lost without an error, as on a broken link.
const BLACKHOLE_MAC: &str = "02:00:00:00:00:fe";

pub(crate) struct Network {
    prefix: String,
    /// The first three octets of all addresses.
    base: String,
}

impl Network {
    pub(crate) async fn create(prefix: &str) -> Result<Self> {
        let base = free_base(&run("ip", &["-4", "-o", "addr"]).await?)?;
        let network = Self {
            prefix: prefix.to_owned(),
            base,
        };
        let made = run("ip", &["link", "add", prefix, "type", "bridge"]).await;
        made.context(
            "network namespaces and bridges are not permitted on this machine: run as root, and not in a \
             container without CAP_NET_ADMIN",
        )?;
        let own = format!("{}/24", network.address(1));
        run("ip", &["addr", "add", &own, "dev", prefix]).await?;
        run("ip", &["link", "set", prefix, "up"]).await?;
        Ok(network)
    }

    pub(crate) fn address(&self, last: u8) -> String {
        format!("{}.{last}", self.base)
    }

    pub(crate) fn range(&self) -> String {
        format!("{}.0/24", self.base)
    }

    pub(crate) fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.prefix)
    }

    /// Adds a machine with these addresses to the bridge.
    pub(crate) async fn add(&self, machine: &str, addresses: &[String]) -> Result<()> {
        let (space, link) = (self.namespace(machine), self.link(machine));
        run("ip", &["netns", "add", &space])
            .await
            .context("network namespaces are not permitted on this machine: run as root")?;
        run(
            "ip",
            &[
                "link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &space,
            ],
        )
        .await?;
        run("ip", &["link", "set", &link, "master", &self.prefix, "up"]).await?;
        for address in addresses {
            let address = format!("{address}/24");
            run(
                "ip",
                &["-n", &space, "addr", "add", &address, "dev", "eth0"],
            )
            .await?;
        }
        for device in ["lo", "eth0"] {
            run("ip", &["-n", &space, "link", "set", device, "up"]).await?;
        }
        Ok(())
    }

    /// Sets the link of a machine up or down.
    pub(crate) async fn set_link_up(&self, machine: &str, is_up: bool) -> Result<()> {
        let state = if is_up { "up" } else { "down" };
        run("ip", &["link", "set", &self.link(machine), state]).await?;
        Ok(())
    }

    /// Drops packets from `machine` to `address`.
    pub(crate) async fn drop_packets(&self, machine: &str, address: &str) -> Result<()> {
        let space = self.namespace(machine);
        run(
            "ip",
            &[
                "-n",
                &space,
                "neigh",
                "replace",
                address,
                "lladdr",
                BLACKHOLE_MAC,
                "dev",
                "eth0",
                "nud",
                "permanent",
            ],
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn restore_packets(&self, machine: &str, address: &str) -> Result<()> {
        let space = self.namespace(machine);
        run(
            "ip",
            &["-n", &space, "neigh", "del", address, "dev", "eth0"],
        )
        .await?;
        Ok(())
    }

    fn link(&self, machine: &str) -> String {
        format!("{}{machine}", self.prefix)
    }
}

/// A private address range that this machine does not use.
fn free_base(addresses: &str) -> Result<String> {
    for second in 181..=250 {
        let base = format!("10.{second}.7");
        if !addresses.contains(&format!(" {base}.")) {
            return Ok(base);
        }
    }
    bail!("no private address range is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_ranges_in_use_are_skipped() {
        assert_eq!(free_base("").unwrap(), "10.181.7");
        let used = "9: crf1    inet 10.181.7.1/24 brd 10.181.7.255";
        assert_eq!(free_base(used).unwrap(), "10.182.7");
    }
}
