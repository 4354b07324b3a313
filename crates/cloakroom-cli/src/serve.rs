//! `cloakroom serve`: runs a node.

use std::pin::pin;

use cloakroom::config::Config;
use cloakroom::{security_codes, telemetry};

use crate::node::{Listeners, stop_signal};
use crate::startup;

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&config)?;
    let mut stop = pin!(stop_signal()?);
    let vault = tokio::select! {
        opened = startup::open(&config, &telemetry) => opened?,
        () = &mut stop => return Ok(()),
    };
    security_codes::check_redis(&vault.security_codes).await?;
    let listeners = Listeners::bind(&config).await?;
    listeners.run(vault, telemetry, stop).await
}
