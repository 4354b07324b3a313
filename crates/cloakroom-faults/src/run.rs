//! A run: the cluster is started, broken in one way after the other, and examined after each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::checker;
use crate::clients::api::Api;
use crate::clients::pace::Pace;
use crate::clients::tally::{Rule, Silences};
use crate::clients::{Crowd, Load};
use crate::cluster::vault::Keys;
use crate::cluster::{self, Cluster};
use crate::faults::{Fault, Stage};
use crate::ledger::Ledger;
use crate::report::Row;
use crate::sabotage::Sabotage;

/// How long the cluster may take to be whole again after a fault was mended. A machine that comes back replays, or
/// copies, what it missed, while clients go on asking: minutes, when there are gigabytes.
pub(crate) const SETTLED_WITHIN: Duration = Duration::from_secs(600);

/// How much is asked, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    /// Before a fault, and at least after it.
    pub(crate) calm: Duration,
    /// Acknowledged writes per fault: the load goes on until they are there.
    pub(crate) writes: u64,
    pub(crate) hold: Duration,
}

pub(crate) struct Run {
    pub(crate) stage: Stage,
    pub(crate) plan: Plan,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) keys: Keys,
    pub(crate) api: Api,
    /// Each node by itself, past the load balancer.
    pub(crate) nodes: Vec<Api>,
    parts: Vec<Arc<Load>>,
    started_at: Instant,
}

impl Run {
    pub(crate) async fn start(
        options: cluster::Options,
        plan: Plan,
        old_binary: Option<PathBuf>,
    ) -> Result<Self> {
        let started_at = Instant::now();
        say("starting three databases, two nodes, two load balancers and Redis in six namespaces");
        let cluster = Cluster::start(options).await?;
        let keys = cluster.install_vault().await?;
        cluster.start_nodes().await?;
        cluster.examine().await?;
        say("cloakroom doctor finds nothing wrong");
        let api = Api::new(&cluster.api_url(), cluster.authority.pem())?;
        let nodes = cluster.nodes.iter().map(|node| {
            let base = format!("https://{}:8443", node.machine.address);
            api.at(&base)
        });
        let nodes = nodes.collect();
        let ledger = Arc::new(Ledger::create(&cluster.guard.folder.join("ledger.txt"))?);
        Ok(Self {
            stage: Stage {
                cluster,
                hold: plan.hold,
                old_binary,
            },
            plan,
            ledger,
            keys,
            api,
            nodes,
            parts: Vec::new(),
            started_at,
        })
    }

    /// One fault under load, and what came of it.
    pub(crate) async fn strike(&mut self, fault: &Fault) -> Result<Row> {
        self.strike_with(fault, None).await
    }

    /// The same with something done wrong.
    pub(crate) async fn strike_with(
        &mut self,
        fault: &Fault,
        sabotage: Option<Sabotage>,
    ) -> Result<Row> {
        let started_at = Instant::now();
        let load = Arc::new(self.new_load(sabotage)?);
        self.parts.push(load.clone());
        say(&format!("{}: {}", fault.name, fault.what));
        if let Some(sabotage) = sabotage {
            sabotage.prepare(&self.stage.cluster).await?;
        }

        let crowd = Crowd::start(&load, self.plan.clients);
        self.wait_for_writes(&load).await?;
        tokio::time::sleep(self.plan.calm).await;
        load.tally.listen();
        let struck = (fault.strike)(&self.stage, &load).await;
        struck.with_context(|| self.stage.cluster.log_tails())?;
        let settled = self.stage.cluster.wait_until_settled(SETTLED_WITHIN).await;
        settled.with_context(|| self.stage.cluster.log_tails())?;
        tokio::time::sleep(self.plan.calm).await;
        self.write_enough(fault, &load).await;
        let silent = load.tally.silent();
        crowd.finish().await;
        if let Some(sabotage) = sabotage {
            sabotage.interfere(&self.stage.cluster, &load).await?;
        }

        for (silence, limit, what) in [
            (
                silent.writes,
                fault.writes_within,
                "no write was acknowledged",
            ),
            (
                silent.catalog,
                fault.catalog_within,
                "the catalog was not answered",
            ),
        ] {
            if limit.is_some_and(|limit| silence > limit) {
                let what = format!("{what} for {:.1} s", silence.as_secs_f64());
                load.tally.violation(Rule::Unavailable, what);
            }
        }
        let tokens = checker::check(&load, &self.nodes).await?;
        checker::check_records(&load, &self.stage.cluster).await?;
        if let Some(sabotage) = sabotage {
            sabotage.undo(&self.stage.cluster).await?;
        }
        Ok(row(fault.name, &load, tokens, silent, started_at))
    }

    fn new_load(&self, sabotage: Option<Sabotage>) -> Result<Load> {
        let part = u16::try_from(self.parts.len())?;
        let (api, keys) = (self.api.clone(), self.keys.clone());
        let mut load = Load::new(part, api, keys, self.ledger.clone());
        load.sabotage = sabotage;
        Ok(load)
    }

    /// A load whose requests are remembered, so many a second at most.
    pub(crate) fn paced_load(&mut self, per_second: Option<f64>) -> Result<Load> {
        let mut load = self.new_load(None)?;
        load.pace = Pace::new(per_second);
        load.is_watched = true;
        // The next one is another part.
        let taken = Load::new(
            load.part,
            self.api.clone(),
            self.keys.clone(),
            self.ledger.clone(),
        );
        self.parts.push(Arc::new(taken));
        Ok(load)
    }

    /// A fault proves nothing unless clients are being served when it strikes.
    async fn wait_for_writes(&self, load: &Load) -> Result<()> {
        let asked_at = Instant::now();
        while load.tally.acknowledged.load(Ordering::Relaxed) < 100 {
            if asked_at.elapsed() > Duration::from_secs(30) {
                bail!(
                    "clients are not served before anything is broken\n{}",
                    self.stage.cluster.log_tails()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Goes on until this fault has its share of acknowledged writes.
    async fn write_enough(&self, fault: &Fault, load: &Load) {
        let written = || load.tally.acknowledged.load(Ordering::Relaxed);
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

    /// Everything of the run once more: what a later fault did to earlier tokens.
    pub(crate) async fn check_all(&self) -> Result<Row> {
        let started_at = Instant::now();
        say("everything of the run once more");
        let mut last = None;
        for load in &self.parts {
            let again = Load::new(
                load.part,
                self.api.clone(),
                self.keys.clone(),
                self.ledger.clone(),
            );
            let tokens = checker::check(&again, &self.nodes).await?;
            let silent = Silences {
                writes: Duration::ZERO,
                reads: Duration::ZERO,
                catalog: Duration::ZERO,
            };
            let row = row("all of them", &again, tokens, silent, started_at);
            last = Some(match last {
                None => row,
                Some(sum) => added(sum, row),
            });
        }
        last.context("nothing was done")
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started_at.elapsed().as_secs_f64()
    }
}

fn added(mut sum: Row, row: Row) -> Row {
    sum.tokens += row.tokens;
    sum.lost += row.lost;
    sum.doubled += row.doubled;
    sum.wrong += row.wrong;
    sum.resurrected += row.resurrected;
    sum.violations.extend(row.violations);
    sum.seconds = row.seconds;
    sum
}

fn row(
    name: &str,
    load: &Load,
    tokens: usize,
    silent: Silences<Duration>,
    started_at: Instant,
) -> Row {
    let tally = &load.tally;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Row {
        fault: name.to_owned(),
        tried: count(&tally.tried),
        acknowledged: count(&tally.acknowledged),
        reads: count(&tally.reads),
        unanswered: count(&tally.failed),
        tokens,
        lost: tally.count(Rule::Lost),
        doubled: tally.count(Rule::Doubled),
        wrong: tally.count(Rule::Wrong),
        resurrected: tally.count(Rule::Resurrected),
        unrecorded: tally.count(Rule::Unrecorded),
        writes_away_s: silent.writes.as_secs_f64(),
        reads_away_s: silent.reads.as_secs_f64(),
        catalog_away_s: silent.catalog.as_secs_f64(),
        violations: tally.told(),
        seconds: started_at.elapsed().as_secs_f64(),
    }
}

pub(crate) fn say(what: &str) {
    println!("faults: {what}");
}
