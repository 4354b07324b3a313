//! HAProxy in front of the nodes.

use std::path::Path;

use anyhow::Result;
use cloakroom_devtools::haproxy;

use crate::bench::server::{LAUNCHER, Ready, Server, bare, free_addresses};

/// Starts a proxy that distributes requests to `nodes` round robin.
pub(super) async fn start(nodes: &[&Server], folder: &Path) -> Result<Server> {
    let [address, _] = free_addresses()?.map(|address| address.to_string());
    let file = folder.join("haproxy.cfg");
    let targets: Vec<&str> = nodes.iter().map(|node| node.address.as_str()).collect();
    std::fs::write(&file, haproxy::configuration(&address, &targets))?;
    let mut command = bare(&LAUNCHER, Path::new("haproxy"));
    command.args(["-db", "-q", "-f"]).arg(file);
    let ready = Ready {
        address: &address,
        path: haproxy::READY,
    };
    Server::start(command, &address, ready, &folder.join("haproxy.log")).await
}
