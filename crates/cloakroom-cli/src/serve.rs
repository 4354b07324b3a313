//! `cloakroom serve`: one node of the vault.

use anyhow::Context as _;
use cloakroom::config::Config;
use cloakroom::{Vault, telemetry};

use crate::node::{Listeners, stop_signal};

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&config)?;
    let stop = stop_signal()?;
    let vault = Vault::open(config.clone())
        .await
        .context("the vault does not open")?;
    let listeners = Listeners::bind(&config).await?;
    listeners.run(vault, telemetry, stop).await
}
