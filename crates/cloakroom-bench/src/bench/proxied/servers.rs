//! The destination, and the two proxies in front of it.

use anyhow::Result;

use super::Programs;
use crate::bench::pair::{self, EVERYTHING};
use crate::bench::server::{LAUNCHER, Ready, Server, bare, free_addresses};
use crate::bench::stage::Stage;
use crate::bench::{node, probe};

const HOST: &str = "psp.example.com";

pub(super) struct Servers {
    pub(super) node: Server,
    pub(super) reverse_proxy: Server,
    pub(super) destination: Server,
    /// Returns how many requests the destination holds.
    control: String,
    /// The URL of the destination.
    pub(super) url: String,
}

impl Servers {
    /// `held` requests to the slow path of the destination must fit into the limits of the node.
    pub(super) async fn start(
        stage: &Stage,
        programs: &Programs,
        held: Option<u32>,
    ) -> Result<Self> {
        let folder = stage.folder.path();
        let ca_file = folder.join("destination.pem");
        let [address, control] = free_addresses()?;
        let (port, control) = (address.port(), control.to_string());

        let mut command = bare(&LAUNCHER, &programs.destination);
        command.args([&address.to_string(), &control, HOST]);
        command.arg(&ca_file);
        let ready = Ready {
            address: &control,
            path: "/",
        };
        let log = folder.join("destination.log");
        let destination = Server::start(command, &address.to_string(), ready, &log).await?;

        let [listen, _] = free_addresses()?.map(|address| address.to_string());
        let mut command = bare(&LAUNCHER, &programs.reverse_proxy);
        command.args([&listen, HOST, &destination.address]);
        command.arg(&ca_file);
        let ready = Ready {
            address: &listen,
            path: "/",
        };
        let log = folder.join("reverse_proxy.log");
        let reverse_proxy = Server::start(command, &listen, ready, &log).await?;

        let mut settings = pair::resolved(&[EVERYTHING], &stage.redis.url(), folder)?;
        settings.extend([
            ("CLOAKROOM__EGRESS__ALLOWED_HOSTS", HOST.to_owned()),
            ("CLOAKROOM__EGRESS__PORTS", port.to_string()),
            (
                "CLOAKROOM__EGRESS__ALLOW_PRIVATE_NETWORKS",
                "127.0.0.1/32".to_owned(),
            ),
            (
                "CLOAKROOM__EGRESS__STATIC_ADDRESSES",
                format!("{HOST}=127.0.0.1"),
            ),
            ("CLOAKROOM__EGRESS__CA_FILE", ca_file.display().to_string()),
        ]);
        if let Some(held) = held {
            // One tenant gets three quarters of a limit.
            let limit = (2 * held).to_string();
            settings.extend([
                ("CLOAKROOM__EGRESS__MAX_IN_FLIGHT", limit.clone()),
                (
                    "CLOAKROOM__EGRESS__MAX_IN_FLIGHT_PER_DESTINATION",
                    limit.clone(),
                ),
                ("CLOAKROOM__HTTP__MAX_CONNECTIONS", limit.clone()),
                ("CLOAKROOM__HTTP__MAX_CONNECTIONS_PER_ADDRESS", limit),
            ]);
        }
        let node = node::start(&stage.vault, &folder.join("proxying.log"), &settings).await?;
        Ok(Self {
            node,
            reverse_proxy,
            destination,
            control,
            url: format!("https://{HOST}:{port}"),
        })
    }

    /// Requests that the slow path of the destination holds.
    pub(super) async fn held(&self) -> Result<u32> {
        Ok(probe::get(&self.control, "/", "").await?.parse()?)
    }

    /// The other two are killed when they are dropped.
    pub(super) async fn stop(self) -> Result<()> {
        self.node.stop().await
    }
}
