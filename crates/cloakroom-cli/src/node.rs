//! A running node: the API listener, the admin listener and the jobs.

use std::future::Future;
use std::net::SocketAddr;

use cloakroom::admin::{self, Readiness};
use cloakroom::config::Config;
use cloakroom::server::Server;
use cloakroom::telemetry::Telemetry;
use cloakroom::threeds::networks::CardNetworks;
use cloakroom::threeds::{ThreedsServer, sessions};
use cloakroom::{Node, jobs, router};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// All listeners, bound but not yet accepting requests.
pub(crate) struct Listeners {
    api: Server,
    admin: Server,
    /// Receives results (RReq) from directory servers.
    results: Option<Server>,
    readiness: Readiness,
}

impl Listeners {
    pub(crate) async fn bind(config: &Config) -> anyhow::Result<Self> {
        let networks = CardNetworks::open(config)?;
        let readiness = Readiness::new(jobs::CHECKS);
        let api = Server::bind(&config.http).await?;
        Ok(Self {
            results: Server::bind_threeds_results(config, &networks).await?,
            api: api.with_readiness(&readiness),
            admin: Server::bind_admin(config).await?,
            readiness,
        })
    }

    /// The readiness of the node while it runs.
    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    pub(crate) fn api_address(&self) -> SocketAddr {
        self.api.local_addr()
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin.local_addr()
    }

    /// Address of the listener for results from directory servers, if there is one.
    pub(crate) fn results_address(&self) -> Option<SocketAddr> {
        self.results.as_ref().map(Server::local_addr)
    }

    /// Serves until `stop`, then drains running requests.
    pub(crate) async fn run(
        self,
        vault: Node,
        telemetry: Telemetry,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let readiness = self.readiness;
        let mut jobs = jobs::start(&vault, &readiness);
        if telemetry.export_interval().is_some() {
            jobs.spawn(admin::export_metrics(
                readiness.clone(),
                telemetry.clone(),
                vault.clone(),
            ));
        }
        let (drained, wait_drained) = tokio::sync::oneshot::channel::<()>();
        let admin_app = admin::router(readiness.clone(), telemetry.clone(), Some(vault.clone()));
        let admin = self.admin.run(admin_app, async {
            let _ = wait_drained.await;
        });
        let mut stopped = Ok(());
        let api = async {
            let stop = async {
                stopped = wait_for_stop(&mut jobs, stop).await;
                readiness.drain();
            };
            self.api.run(router::api(vault.clone()), stop).await;
            drop(drained);
        };
        // Accepts challenge results until the API has drained.
        let (api_stopped, wait_api_stopped) = tokio::sync::oneshot::channel::<()>();
        let results = async {
            if let Some(results) = self.results {
                let stopped = async {
                    let _ = wait_api_stopped.await;
                };
                results
                    .run(
                        sessions::results_router(ThreedsServer::clone(&vault)),
                        stopped,
                    )
                    .await;
            }
        };
        let api = async {
            api.await;
            drop(api_stopped);
        };
        tokio::join!(api, admin, results);
        drop(jobs);
        // Counts that cannot be written now are lost, as documented.
        let _lost = vault.deprecation_counts.write(&vault.db).await;
        vault.audit.close().await;
        // The last counts.
        telemetry.export_metrics().await;
        tokio::task::spawn_blocking(move || telemetry.shutdown()).await?;
        stopped
    }
}

/// Waits until the node is to stop. Fails if a job ends: none does by itself, and a node without it would seem to be healthy.
async fn wait_for_stop(
    jobs: &mut JoinSet<()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tokio::select! {
        () = stop => Ok(()),
        Some(_ended) = jobs.join_next() => {
            tracing::error!("a background job has ended; the node stops");
            anyhow::bail!("a background job has ended; the log has the location of its panic")
        }
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_node_stops_with_an_error_if_a_job_ends() {
        let mut jobs = JoinSet::new();
        jobs.spawn(pending());
        assert!(wait_for_stop(&mut jobs, ready(())).await.is_ok());

        jobs.spawn(async { panic!("a bug") });
        assert!(wait_for_stop(&mut jobs, pending()).await.is_err());
    }
}
