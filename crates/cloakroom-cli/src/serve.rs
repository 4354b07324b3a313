//! `cloakroom serve`: runs a node.

use anyhow::Context as _;
use cloakroom::config::Config;
use cloakroom::{Node, telemetry};

use crate::node::{Listeners, stop_signal};

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&config)?;
    let stop = stop_signal()?;
    let vault = Node::open(config.clone())
        .await
        .context("cannot open the vault")?;
    let listeners = Listeners::bind(&config).await?;
    listeners.run(vault, telemetry, stop).await
}
