//! The workload: clients that send requests during faults.

pub(crate) mod api;
pub(crate) mod client;
pub(crate) mod outbound;
pub(crate) mod pacer;
mod reads;
pub(crate) mod stats;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use self::api::{Api, ApiRequest, ApiResponse};
use self::client::{Client, CreateMode, is_retryable};
use self::outbound::OutboundHistory;
use self::pacer::Pacer;
use self::stats::{Invariant, Stats};
use crate::cluster::vault::Keys;
use crate::history::History;
use crate::mutation::Mutation;

/// Tokens that a client updates and reads at a time.
const OWN_TOKENS_MAX: usize = 64;
/// Interval of probe requests, which measure outages.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);
const PROBES_MAX: usize = 150;
/// How long clients retry indeterminate writes after the workload has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// State shared by all clients of one part of a run.
pub(crate) struct Workload {
    pub(crate) part: u16,
    pub(crate) api: Api,
    pub(crate) keys: Keys,
    pub(crate) history: Arc<History>,
    /// Proxied requests and events of this part.
    pub(crate) outbound: OutboundHistory,
    pub(crate) stats: Stats,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) pacer: Pacer,
    /// Whether to record latency and status of each request.
    pub(crate) is_recorded: bool,
    pub(crate) reads: AtomicU64,
    is_stopped: AtomicBool,
    gives_up: AtomicBool,
}

impl Workload {
    pub(crate) fn new(part: u16, api: Api, keys: Keys, history: Arc<History>) -> Self {
        Self {
            part,
            api,
            keys,
            history,
            outbound: OutboundHistory::default(),
            stats: Stats::new(),
            mutation: None,
            pacer: Pacer::new(None),
            is_recorded: false,
            reads: AtomicU64::default(),
            is_stopped: AtomicBool::default(),
            gives_up: AtomicBool::default(),
        }
    }

    /// Sends a request, and records it if enabled.
    async fn send(&self, request: ApiRequest<'_>) -> Result<ApiResponse> {
        let at = Instant::now();
        let result = self.api.send(request).await;
        if self.is_recorded {
            let status = result.as_ref().map_or(0, |response| response.status);
            self.pacer.record(at, status);
        }
        result
    }

    /// The trace id of a read in the audit log.
    pub(crate) fn trace(&self, read: u64) -> String {
        format!("{}{read}", self.trace_prefix())
    }

    pub(crate) fn trace_prefix(&self) -> String {
        format!("part-{}-read-", self.part)
    }

    fn record_revealed(&self, read: u64) {
        let mut revealed = self
            .stats
            .revealed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        revealed.push(read);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn has_given_up(&self) -> bool {
        self.gives_up.load(Ordering::Relaxed)
    }

    fn expect_retryable(&self, result: Result<ApiResponse>, what: &str) {
        if is_retryable(&result) {
            return;
        }
        let status = result.map_or(0, |response| response.status);
        let what = format!("{what} returned {status}");
        self.stats.violation(Invariant::Wrong, what);
    }
}

/// The running clients.
pub(crate) struct ClientPool {
    workload: Arc<Workload>,
    clients: JoinSet<()>,
}

impl ClientPool {
    pub(crate) fn start(workload: &Arc<Workload>, clients: usize) -> Self {
        let mut set = JoinSet::new();
        for seed in 0..clients {
            let client = Client {
                workload: workload.clone(),
            };
            set.spawn(async move { run_client(&client, seed as u64).await });
        }
        let client = Client {
            workload: workload.clone(),
        };
        let writer = client.clone();
        set.spawn(async move { writer.write_with_events().await });
        set.spawn(async move { run_probe(&client).await });
        Self {
            workload: workload.clone(),
            clients: set,
        }
    }

    /// Waits for the clients to finish. Writes that are indeterminate after a timeout stay so.
    pub(crate) async fn finish(mut self) {
        self.workload.is_stopped.store(true, Ordering::Relaxed);
        let ended_at = Instant::now();
        while !self.clients.is_empty() {
            if ended_at.elapsed() > DRAIN_TIMEOUT {
                self.workload.gives_up.store(true, Ordering::Relaxed);
            }
            let next = self.clients.join_next();
            let _still_running = tokio::time::timeout(Duration::from_millis(100), next).await;
        }
    }
}

/// Runs a client: mostly creates, one in ten from an intent, and some updates, reads, deletes and proxied requests.
async fn run_client(client: &Client, seed: u64) {
    let mut rng = SplitMix64(seed + 1);
    let mut own: Vec<usize> = Vec::new();
    while !client.workload.is_stopped() {
        client.workload.pacer.wait().await;
        let roll = rng.next_below(100);
        let chosen = (!own.is_empty()).then(|| rng.next_below(own.len().max(1) as u64) as usize);
        match (roll, chosen) {
            (50..62, Some(chosen)) => {
                if !client.update(own[chosen]).await {
                    own.swap_remove(chosen);
                }
            }
            (62..68, Some(chosen)) => {
                let number = own.swap_remove(chosen);
                client.delete(number).await;
                client.read(number, true).await;
            }
            (68..84, Some(chosen)) => client.read(own[chosen], false).await,
            (84..94, Some(chosen)) => client.read(own[chosen], true).await,
            (94..100, Some(chosen)) => client.proxy(own[chosen]).await,
            _ => {
                let mode = match rng.next_below(10) {
                    0 => CreateMode::Once,
                    1 => CreateMode::FromIntent,
                    _ => CreateMode::Retried,
                };
                if let Some(number) = client.create(mode).await {
                    own.push(number);
                }
            }
        }
        if own.len() > OWN_TOKENS_MAX {
            own.swap_remove(0);
        }
    }
}

/// Sends requests at a fixed interval without waiting for responses, to detect the end of an outage.
async fn run_probe(client: &Client) {
    let Some(known) = client.create(CreateMode::Retried).await else {
        return;
    };
    let mut tick = tokio::time::interval(PROBE_INTERVAL);
    let mut probes = JoinSet::new();
    while !client.workload.is_stopped() {
        tick.tick().await;
        while probes.try_join_next().is_some() {}
        if probes.len() >= PROBES_MAX {
            continue;
        }
        let (writer, reader) = (client.clone(), client.clone());
        probes.spawn(async move {
            writer.create(CreateMode::Retried).await;
        });
        probes.spawn(async move { reader.read(known, false).await });
        let catalog_reader = client.clone();
        probes.spawn(async move { catalog_reader.read_catalog().await });
    }
    while probes.join_next().await.is_some() {}
}

/// A pseudorandom number generator with a fixed seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next_below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}
