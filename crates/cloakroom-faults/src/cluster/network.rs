//! Machines as network namespaces on one bridge, whose links can be cut and healed.

use anyhow::{Context, Result, bail};

use super::command::run;

/// Frames for this address reach the bridge, and nobody takes them: silence, as on a broken link.
const NOBODY: &str = "02:00:00:00:00:fe";

pub(crate) struct Network {
    prefix: String,
    /// The first three numbers of every address.
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
            "this machine does not permit network namespaces and bridges: run it as root, outside of a \
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

    /// A machine with these addresses, linked to all others.
    pub(crate) async fn add(&self, machine: &str, addresses: &[String]) -> Result<()> {
        let (space, link) = (self.namespace(machine), self.link(machine));
        run("ip", &["netns", "add", &space])
            .await
            .context("this machine does not permit network namespaces: run it as root")?;
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

    /// Pulls the plug of a machine's network, or puts it back.
    pub(crate) async fn plug(&self, machine: &str, is_in: bool) -> Result<()> {
        let state = if is_in { "up" } else { "down" };
        run("ip", &["link", "set", &self.link(machine), state]).await?;
        Ok(())
    }

    /// What `machine` sends to `address` is lost from now on.
    pub(crate) async fn lose(&self, machine: &str, address: &str) -> Result<()> {
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
                NOBODY,
                "dev",
                "eth0",
                "nud",
                "permanent",
            ],
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn find_again(&self, machine: &str, address: &str) -> Result<()> {
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

/// A private range that this machine does not use yet.
fn free_base(addresses: &str) -> Result<String> {
    for second in 181..=250 {
        let base = format!("10.{second}.7");
        if !addresses.contains(&format!(" {base}.")) {
            return Ok(base);
        }
    }
    bail!("no private range of addresses is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_in_use_is_left_alone() {
        assert_eq!(free_base("").unwrap(), "10.181.7");
        let used = "9: crf1    inet 10.181.7.1/24 brd 10.181.7.255";
        assert_eq!(free_base(used).unwrap(), "10.182.7");
    }
}
