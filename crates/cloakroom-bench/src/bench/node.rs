//! The measured node.

use std::path::Path;

use anyhow::Result;

use super::server::{LAUNCHER, Ready, Server, free_addresses};
use super::vault::Vault;

/// Starts a node with these environment variables.
pub(super) async fn start(
    vault: &Vault,
    log: &Path,
    settings: &[(&str, String)],
) -> Result<Server> {
    let [api, admin] = free_addresses()?.map(|address| address.to_string());
    let mut command = vault.command(&LAUNCHER);
    command
        .arg("serve")
        .env("CLOAKROOM__HTTP__LISTEN", &api)
        .env("CLOAKROOM__ADMIN__LISTEN", &admin)
        .envs(settings.iter().map(|(name, value)| (name, value)));
    let ready = Ready {
        address: &admin,
        path: "/readyz",
    };
    Server::start(command, &api, ready, log).await
}
