//! `cloakroom serve`: runs a node.

use std::pin::pin;

use cloakroom::config::Config;
use cloakroom::{security_codes, telemetry};

use crate::node::{Listeners, stop_signal};
use crate::{service_manager, startup};

pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let telemetry = telemetry::start(&config)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the node starts");
    for finding in config.check() {
        tracing::warn!(
            setting = finding.location,
            reason = finding.message,
            "a setting is risky"
        );
    }
    let mut stop = pin!(stop_signal()?);
    let vault = tokio::select! {
        opened = startup::open(&config, &telemetry) => opened?,
        () = &mut stop => return Ok(()),
    };
    security_codes::check_redis(&vault.security_codes).await?;
    let listeners = Listeners::bind(&config).await?;
    // The listeners queue connections from here on.
    service_manager::report_ready();
    let stop = async {
        stop.await;
        service_manager::report_stopping();
    };
    listeners.run(vault, telemetry, stop).await
}
