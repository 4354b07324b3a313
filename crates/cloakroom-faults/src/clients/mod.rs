//! Clients that go on asking, whatever happens to the cluster.

pub(crate) mod api;
pub(crate) mod client;
pub(crate) mod pace;
pub(crate) mod tally;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use self::api::{Answer, Api, Question};
use self::client::{Client, Way, is_retriable};
use self::pace::Pace;
use self::tally::{Rule, Tally};
use crate::cluster::vault::Keys;
use crate::ledger::Ledger;
use crate::sabotage::Sabotage;

/// Tokens that a client changes and reads at a time.
const OWN_MAX: usize = 64;
/// How often somebody asks who waits for nobody: silence is measured by it.
const PROBE_PAUSE: Duration = Duration::from_millis(200);
const PROBES_MAX: usize = 150;
/// How long clients go on about what they do not know yet, after the load has ended.
const AFTERWARDS_MAX: Duration = Duration::from_secs(60);

/// What all clients of one part of a run have in common.
pub(crate) struct Load {
    pub(crate) part: u16,
    pub(crate) api: Api,
    pub(crate) keys: Keys,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) tally: Tally,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) pace: Pace,
    /// Whether each request is remembered.
    pub(crate) is_watched: bool,
    pub(crate) reads: AtomicU64,
    has_ended: AtomicBool,
    gives_up: AtomicBool,
}

impl Load {
    pub(crate) fn new(part: u16, api: Api, keys: Keys, ledger: Arc<Ledger>) -> Self {
        Self {
            part,
            api,
            keys,
            ledger,
            tally: Tally::new(),
            sabotage: None,
            pace: Pace::new(None),
            is_watched: false,
            reads: AtomicU64::default(),
            has_ended: AtomicBool::default(),
            gives_up: AtomicBool::default(),
        }
    }

    /// Asks, and remembers how that went if this load is watched.
    async fn ask(&self, question: Question<'_>) -> Result<Answer> {
        let at = Instant::now();
        let answered = self.api.ask(question).await;
        if self.is_watched {
            let status = answered.as_ref().map_or(0, |answer| answer.status);
            self.pace.note(at, status);
        }
        answered
    }

    /// What the record of a read is found by.
    pub(crate) fn trace(&self, read: u64) -> String {
        format!("part-{}-read-{read}", self.part)
    }

    fn revealed(&self, read: u64) {
        let mut revealed = self
            .tally
            .revealed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        revealed.push(read);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn is_given_up(&self) -> bool {
        self.gives_up.load(Ordering::Relaxed)
    }

    fn expect_retriable(&self, answered: Result<Answer>, what: &str) {
        if is_retriable(&answered) {
            return;
        }
        let status = answered.map_or(0, |answer| answer.status);
        let what = format!("{what} was answered with {status}");
        self.tally.violation(Rule::Wrong, what);
    }
}

/// Clients at work.
pub(crate) struct Crowd {
    load: Arc<Load>,
    clients: JoinSet<()>,
}

impl Crowd {
    pub(crate) fn start(load: &Arc<Load>, clients: usize) -> Self {
        let mut set = JoinSet::new();
        for seed in 0..clients {
            let client = Client { load: load.clone() };
            set.spawn(async move { work(&client, seed as u64).await });
        }
        let client = Client { load: load.clone() };
        set.spawn(async move { probe(&client).await });
        Self {
            load: load.clone(),
            clients: set,
        }
    }

    /// Lets everybody finish what they are at; what is still unknown after a while stays unknown.
    pub(crate) async fn finish(mut self) {
        self.load.has_ended.store(true, Ordering::Relaxed);
        let ended_at = Instant::now();
        while !self.clients.is_empty() {
            if ended_at.elapsed() > AFTERWARDS_MAX {
                self.load.gives_up.store(true, Ordering::Relaxed);
            }
            let next = self.clients.join_next();
            let _nobody_yet = tokio::time::timeout(Duration::from_millis(100), next).await;
        }
    }
}

/// A client's day: mostly creates, one in ten of an intent, some changes, reads and deletes.
async fn work(client: &Client, seed: u64) {
    let mut dice = Dice(seed + 1);
    let mut own: Vec<usize> = Vec::new();
    while !client.load.has_ended() {
        client.load.pace.wait().await;
        let roll = dice.roll(100);
        let chosen = (!own.is_empty()).then(|| dice.roll(own.len().max(1) as u64) as usize);
        match (roll, chosen) {
            (50..62, Some(chosen)) => {
                if !client.change(own[chosen]).await {
                    own.swap_remove(chosen);
                }
            }
            (62..68, Some(chosen)) => {
                let number = own.swap_remove(chosen);
                client.delete(number).await;
                client.read(number, true).await;
            }
            (68..84, Some(chosen)) => client.read(own[chosen], false).await,
            (84..100, Some(chosen)) => client.read(own[chosen], true).await,
            _ => {
                let way = match dice.roll(10) {
                    0 => Way::Once,
                    1 => Way::FromIntent,
                    _ => Way::Persistent,
                };
                if let Some(number) = client.create(way).await {
                    own.push(number);
                }
            }
        }
        if own.len() > OWN_MAX {
            own.swap_remove(0);
        }
    }
}

/// Asks at a steady pace and does not wait for answers, so that it notices when they come again.
async fn probe(client: &Client) {
    let Some(known) = client.create(Way::Persistent).await else {
        return;
    };
    let mut tick = tokio::time::interval(PROBE_PAUSE);
    let mut asked = JoinSet::new();
    while !client.load.has_ended() {
        tick.tick().await;
        while asked.try_join_next().is_some() {}
        if asked.len() >= PROBES_MAX {
            continue;
        }
        let (writer, reader) = (client.clone(), client.clone());
        asked.spawn(async move {
            writer.create(Way::Persistent).await;
        });
        asked.spawn(async move { reader.read(known, false).await });
        let looker = client.clone();
        asked.spawn(async move { looker.look_up().await });
    }
    while asked.join_next().await.is_some() {}
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}
