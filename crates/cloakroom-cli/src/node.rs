//! A running node: the API listener, the admin listener, the jobs, and stopping all of them.

use std::future::Future;
use std::net::SocketAddr;

use cloakroom::admin::{self, Readiness};
use cloakroom::card_networks::CardNetworks;
use cloakroom::config::Config;
use cloakroom::server::Server;
use cloakroom::telemetry::Telemetry;
use cloakroom::{Vault, jobs, router, threeds};
use tokio::signal::unix::{SignalKind, signal};

/// All listeners, bound but not yet answering.
pub(crate) struct Listeners {
    api: Server,
    admin: Server,
    /// Where directory servers tell results.
    results: Option<Server>,
}

impl Listeners {
    pub(crate) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let networks = CardNetworks::open(config)?;
        Ok(Self {
            results: Server::bind_results(config, &networks).await?,
            api: Server::bind(&config.http).await?,
            admin: Server::bind_admin(config).await?,
        })
    }

    pub(crate) fn api_address(&self) -> SocketAddr {
        self.api.local_addr()
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin.local_addr()
    }

    /// Where directory servers tell results, if they do.
    pub(crate) fn results_address(&self) -> Option<SocketAddr> {
        self.results.as_ref().map(Server::local_addr)
    }

    /// Answers until `stop`, then lets running requests finish.
    pub(crate) async fn run(
        self,
        vault: Vault,
        telemetry: Telemetry,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let readiness = Readiness::new(jobs::CHECKS);
        let jobs = jobs::start(&vault, &readiness);
        let (drained, wait_drained) = tokio::sync::oneshot::channel::<()>();
        let admin_app = admin::router(readiness.clone(), telemetry.clone());
        let admin = self.admin.run(admin_app, async {
            let _ = wait_drained.await;
        });
        let api = async {
            let stop = async {
                stop.await;
                readiness.drain();
            };
            self.api.run(router::api(vault.clone()), stop).await;
            drop(drained);
        };
        // Results of challenges are taken for as long as anything else is.
        let (settled, wait_settled) = tokio::sync::oneshot::channel::<()>();
        let results = async {
            if let Some(results) = self.results {
                let stopped = async {
                    let _ = wait_settled.await;
                };
                results
                    .run(threeds::results_router(vault.clone()), stopped)
                    .await;
            }
        };
        let api = async {
            api.await;
            drop(settled);
        };
        tokio::join!(api, admin, results);
        drop(jobs);
        // Counts that cannot be written now are lost, which the documentation says.
        let _lost = vault.deprecations.write(&vault).await;
        vault.audit.close().await;
        tokio::task::spawn_blocking(move || telemetry.shutdown()).await?;
        Ok(())
    }
}

/// Completes at SIGTERM or SIGINT.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
