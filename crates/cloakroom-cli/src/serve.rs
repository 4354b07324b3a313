//! `cloakroom serve`: runs a node.

use anyhow::Context as _;
use cloakroom::config::Config;
use cloakroom::{Node, security_codes, telemetry};

use crate::node::{Listeners, stop_signal};

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&config)?;
    let stop = stop_signal()?;
    let vault = Node::open(config.clone())
        .await
        .context("cannot open the vault")?;
    security_codes::check_redis(&vault.security_codes).await?;
    let listeners = Listeners::bind(&config).await?;
    listeners.run(vault, telemetry, stop).await
}
