//! A run: starts the cluster, injects faults one after the other, and checks after each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::checker::{self, Checked};
use crate::clients::api::{Api, ApiRequest};
use crate::clients::outbound::receiver_url;
use crate::clients::pacer::Pacer;
use crate::clients::stats::{Invariant, Outages};
use crate::clients::{ClientPool, Workload};
use crate::cluster::vault::Keys;
use crate::cluster::{self, Cluster};
use crate::faults::{Environment, Fault};
use crate::history::History;
use crate::machine_failure::MachineFailure;
use crate::mutation::Mutation;
use crate::receiver::Receiver;
use crate::report::{Row, add_rows, row};

/// Maximum time for the cluster to recover after a fault. A returning machine replays or copies the data it missed
/// under load, which takes minutes for gigabytes.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the webhook endpoint is unavailable at the beginning of each fault. Shorter than the first retry.
const ENDPOINT_OUTAGE: Duration = Duration::from_secs(5);

/// Size and duration of the workload.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// Time without faults before and after each fault.
    pub(crate) quiet: Duration,
    /// Minimum number of acknowledged writes per fault.
    pub(crate) writes: u64,
    pub(crate) fault_duration: Duration,
    /// Outages may take this many times their limit: a short run is for machines that other programs keep busy.
    pub(crate) outage_factor: u32,
}

pub(crate) struct Run {
    pub(crate) environment: Environment,
    pub(crate) plan: Plan,
    pub(crate) history: Arc<History>,
    pub(crate) keys: Keys,
    pub(crate) api: Api,
    /// Each node, bypassing the load balancer.
    pub(crate) nodes: Vec<Api>,
    pub(crate) receiver: Receiver,
    parts: Vec<Arc<Workload>>,
    started_at: Instant,
}

impl Run {
    pub(crate) async fn start(
        options: cluster::Options,
        plan: Plan,
        old_binary: Option<PathBuf>,
    ) -> Result<Self> {
        let started_at = Instant::now();
        log("starting three databases, two nodes, two load balancers and Redis in six namespaces");
        let cluster = Cluster::start(options).await.context(MachineFailure)?;
        let keys = cluster.install_vault().await?;
        cluster.start_nodes().await?;
        cluster.run_doctor().await?;
        log("cloakroom doctor reports no findings");
        let api = Api::new(&cluster.api_url(), cluster.authority.pem())?;
        let nodes = cluster.nodes.iter().map(|node| {
            let base = format!("https://{}:8443", node.machine.address);
            api.at(&base)
        });
        let nodes = nodes.collect();
        let receiver =
            Receiver::start(&cluster.receiver_address(), &cluster.receiver_folder()).await?;
        create_webhook(&api, &keys).await?;
        let history = Arc::new(History::create(&cluster.guard.folder.join("history.txt"))?);
        Ok(Self {
            environment: Environment {
                cluster,
                fault_duration: plan.fault_duration,
                old_binary,
            },
            plan,
            history,
            keys,
            api,
            nodes,
            receiver,
            parts: Vec::new(),
            started_at,
        })
    }

    /// Injects a fault under load, and checks the invariants.
    pub(crate) async fn inject(&mut self, fault: &Fault) -> Result<Row> {
        self.inject_with(fault, None).await
    }

    /// As `inject`, with a mutation.
    pub(crate) async fn inject_with(
        &mut self,
        fault: &Fault,
        mutation: Option<Mutation>,
    ) -> Result<Row> {
        let started_at = Instant::now();
        let workload = Arc::new(self.new_workload(mutation)?);
        self.parts.push(workload.clone());
        log(&format!("{}: {}", fault.name, fault.what));
        if let Some(mutation) = mutation {
            mutation.prepare(&self.environment.cluster).await?;
        }

        let clients = ClientPool::start(&workload, self.plan.clients);
        self.wait_for_writes(&workload).await?;
        tokio::time::sleep(self.plan.quiet).await;
        workload.stats.reset_outages();
        let inject = (fault.inject)(&self.environment, &workload);
        let (injected, ()) = tokio::join!(inject, self.interrupt_endpoint());
        injected.with_context(|| self.environment.cluster.log_tails())?;
        let healthy = self
            .environment
            .cluster
            .wait_until_healthy(RECOVERY_TIMEOUT)
            .await;
        healthy.with_context(|| self.environment.cluster.log_tails())?;
        tokio::time::sleep(self.plan.quiet).await;
        self.write_until_target(fault, &workload).await;
        let longest_outages = workload.stats.longest_outages();
        clients.finish().await;
        if let Some(mutation) = mutation {
            mutation
                .tamper(&self.environment.cluster, &workload)
                .await?;
        }

        for (outage, limit, what) in [
            (
                longest_outages.writes,
                fault.max_write_outage,
                "no write was acknowledged",
            ),
            (
                longest_outages.catalog,
                fault.max_catalog_outage,
                "no catalog read succeeded",
            ),
        ] {
            if limit.is_some_and(|limit| outage > limit * self.plan.outage_factor) {
                let what = format!("{what} for {:.1} s", outage.as_secs_f64());
                workload.stats.violation(Invariant::Unavailable, what);
            }
        }
        let tokens = checker::check(&workload, &self.nodes).await?;
        let cluster = &self.environment.cluster;
        checker::check_audit_log(&workload, cluster).await?;
        let outbound = checker::check_outbound(&workload, &self.receiver, cluster).await?;
        if let Some(mutation) = mutation {
            mutation.undo(&self.environment.cluster).await?;
        }
        Ok(row(
            fault.name,
            &workload,
            Checked { tokens, outbound },
            longest_outages,
            started_at,
        ))
    }

    /// Makes the webhook endpoint unavailable for a while.
    async fn interrupt_endpoint(&self) {
        self.receiver.set_failing(true);
        tokio::time::sleep(ENDPOINT_OUTAGE).await;
        self.receiver.set_failing(false);
    }

    /// Fails if an invariant was violated, except by a mutation; also in a workload that was aborted.
    pub(crate) fn require_no_violations(&self) -> Result<()> {
        let parts = self.parts.iter();
        parts
            .filter(|workload| workload.mutation.is_none())
            .try_for_each(|workload| workload.stats.require_no_violations())
    }

    fn new_workload(&self, mutation: Option<Mutation>) -> Result<Workload> {
        let part = u16::try_from(self.parts.len())?;
        let (api, keys) = (self.api.clone(), self.keys.clone());
        let mut workload = Workload::new(part, api, keys, self.history.clone());
        workload.mutation = mutation;
        Ok(workload)
    }

    /// A workload with a maximum rate, whose requests are recorded.
    pub(crate) fn paced_workload(&mut self, per_second: Option<f64>) -> Result<Workload> {
        let mut workload = self.new_workload(None)?;
        workload.pacer = Pacer::new(per_second);
        workload.is_recorded = true;
        // Reserves the part number.
        let taken = Workload::new(
            workload.part,
            self.api.clone(),
            self.keys.clone(),
            self.history.clone(),
        );
        self.parts.push(Arc::new(taken));
        Ok(workload)
    }

    /// Waits until clients are served, so that the fault hits a working cluster.
    async fn wait_for_writes(&self, workload: &Workload) -> Result<()> {
        let started_at = Instant::now();
        while workload.stats.acknowledged.load(Ordering::Relaxed) < 100 {
            if started_at.elapsed() > Duration::from_secs(30) {
                bail!(
                    "clients are not served before the fault\n{}",
                    self.environment.cluster.log_tails()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Continues until the minimum number of acknowledged writes is reached.
    async fn write_until_target(&self, fault: &Fault, workload: &Workload) {
        let written = || workload.stats.acknowledged.load(Ordering::Relaxed);
        if written() >= self.plan.writes {
            return;
        }
        let bar = ProgressBar::new(self.plan.writes);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(fault.name);
        while written() < self.plan.writes {
            bar.set_position(written());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bar.finish_and_clear();
    }

    /// Checks all tokens of the run again, to detect effects of later faults on earlier tokens.
    pub(crate) async fn check_all(&self) -> Result<Row> {
        let started_at = Instant::now();
        log("checking all tokens of the run again");
        let mut last = None;
        for workload in &self.parts {
            let again = Workload::new(
                workload.part,
                self.api.clone(),
                self.keys.clone(),
                self.history.clone(),
            );
            let checked = Checked {
                tokens: checker::check(&again, &self.nodes).await?,
                ..Checked::default()
            };
            let longest_outages = Outages {
                writes: Duration::ZERO,
                reads: Duration::ZERO,
                catalog: Duration::ZERO,
            };
            let row = row("all of them", &again, checked, longest_outages, started_at);
            last = Some(match last {
                None => row,
                Some(sum) => add_rows(sum, row),
            });
        }
        last.context("no fault was injected")
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started_at.elapsed().as_secs_f64()
    }
}

async fn create_webhook(api: &Api, keys: &Keys) -> Result<()> {
    let url = format!("{}/events", receiver_url());
    let events = ["token.created", "token.updated", "token.deleted"];
    let request = ApiRequest {
        method: Method::POST,
        path: "/webhooks",
        key: &keys.webhooks,
        body: Some(json!({"name": "Receiver", "url": url, "events": events})),
        idempotency_key: None,
        trace: None,
        headers: &[],
    };
    let response = api.send(request).await?;
    ensure!(
        matches!(response.status, 200 | 201),
        "the webhook was not created: {}",
        response.body
    );
    Ok(())
}

pub(crate) fn log(message: &str) {
    println!("faults: {message}");
}
