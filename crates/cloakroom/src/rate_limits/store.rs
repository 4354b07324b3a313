//! What nodes share about limits: the counters in Redis, and the table of nodes.
//!
//! Requests share the questions to Redis: those that are asked together and have the same counters are asked
//! about once, and when there are many, so are the next ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use super::counter::{Counter, Outcome};
use super::reserves::{Group, Reserves, Wish};
use crate::convoy::{Convoy, Load, Size};
use crate::storage::{Away, Db, Error, Redis, Script, statements};

/// How long a node counts as running after it was last seen.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// How long a row of a node that is gone is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Its digest is the one that Redis computes; a test compares them.
const ADMIT: Script = Script {
    text: include_str!("admit.lua"),
    sha1: "8aa9626a0f1ab154ff1d15e707067d36808c5ff3",
};

statements! {
    TELL_NODE: "rate_limits::tell_node" =
        "with told as (
            insert into node (node_id, version, started_at, seen_at)
            values ($1, $2, now(), now())
            on conflict (node_id) do update
            set seen_at = now()
        ), gone as (
            delete from node
            where seen_at < now() - make_interval(secs => $4)
        )
        select count(*)
        from node
        where node_id <> $1
          and seen_at > now() - make_interval(secs => $3)";
    COUNT_NODES: "rate_limits::count_nodes" =
        "select count(*)
        from node
        where seen_at > now() - make_interval(secs => $1)";
}

/// Tells that this node runs, and counts the others that do.
pub(super) async fn tell_node(db: &Db, node: Uuid) -> Result<u64, Error> {
    let version = env!("CARGO_PKG_VERSION");
    let (seen, kept) = (SEEN_WITHIN.as_secs_f64(), KEPT_FOR.as_secs_f64());
    let rows = db
        .write(&TELL_NODE, &[&node, &version, &seen, &kept])
        .await?;
    Ok(count(&rows))
}

/// Counts the nodes that run.
pub(super) async fn count_nodes(db: &Db) -> Result<u64, Error> {
    let rows = db.read(&COUNT_NODES, &[&SEEN_WITHIN.as_secs_f64()]).await?;
    Ok(count(&rows))
}

fn count(rows: &[tokio_postgres::Row]) -> u64 {
    rows.first()
        .map_or(0, |row| row.get::<_, i64>(0))
        .unsigned_abs()
}

/// Counts requests through Redis.
pub(super) struct Counting {
    redis: Arc<Redis>,
    reserves: Arc<Reserves>,
    nodes: Arc<AtomicU64>,
}

impl Counting {
    pub(super) fn in_convoy(
        redis: &Arc<Redis>,
        reserves: &Arc<Reserves>,
        nodes: &Arc<AtomicU64>,
        patience: Duration,
    ) -> Convoy<Self> {
        let (redis, reserves, nodes) = (redis.clone(), reserves.clone(), nodes.clone());
        let counting = Self {
            redis,
            reserves,
            nodes,
        };
        Convoy::new(counting, Size::of_questions(1_000, patience))
    }

    /// Asks about equal requests, and keeps what is set aside for the next ones.
    async fn admit(&self, group: &Group, requests: usize) -> Vec<Vec<Outcome>> {
        let asked_at = Instant::now();
        let nodes = self.nodes.load(Ordering::Relaxed);
        let wish = self.reserves.wish(group, requests as u64, nodes, asked_at);
        let answered = admit(&self.redis, &group.0, requests, wish).await;
        let mut outcomes = answered.unwrap_or_default();
        if wish != Wish::NONE {
            let rest = outcomes.split_off(requests.min(outcomes.len()));
            self.reserves.keep(group, rest, asked_at + wish.time);
        }
        outcomes
    }
}

impl Load for Counting {
    type Item = Group;
    /// Nothing if Redis gave no answer.
    type Answer = Option<Vec<Outcome>>;

    const NAME: &'static str = "rate_limits";

    async fn carry(&self, items: Vec<Group>) -> Vec<Self::Answer> {
        let mut answers: Vec<Self::Answer> = items.iter().map(|_| None).collect();
        let groups = equal(&items);
        let asking = groups
            .iter()
            .map(|places| self.admit(&items[places[0]], places.len()));
        let counted = join_all(asking).await;
        for (places, outcomes) in groups.iter().zip(counted) {
            for (place, outcomes) in places.iter().zip(outcomes) {
                answers[*place] = Some(outcomes);
            }
        }
        answers
    }
}

/// Where requests with the same counters are, in the order in which they came.
fn equal(items: &[Group]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<&Group, usize> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        let group = *known.entry(item).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(places) => places.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

/// Admits equal requests one after the other, each to all of the counters or to none, in one round trip. Tells what
/// each of them hears, and then what those hear for whom an admission was set aside.
async fn admit(
    redis: &Redis,
    counters: &[Counter],
    requests: usize,
    wish: Wish,
) -> Result<Vec<Vec<Outcome>>, Away> {
    let marks: Vec<String> = counters
        .iter()
        .map(|it| format!("{}:blocked", it.name))
        .collect();
    let mut keys = Vec::with_capacity(2 * counters.len());
    let mut arguments = Vec::with_capacity(3 + 3 * counters.len());
    let ahead = number(wish.time.as_micros());
    arguments.extend([requests as u64, wish.admissions, ahead]);
    for (counter, mark) in counters.iter().zip(&marks) {
        keys.extend([&*counter.name, &**mark]);
        arguments.extend([
            counter.limit,
            number(counter.row.window.as_micros()),
            number(counter.block().as_millis()),
        ]);
    }
    let answer: Vec<u64> = redis.run(ADMIT, &keys, &arguments).await?;
    let (admitted, states) = answer.split_first().ok_or(Away)?;
    let (states, rest) = states.as_chunks::<4>();
    if states.len() != counters.len() || !rest.is_empty() {
        return Err(Away);
    }
    let heard = |number: u64| match number < *admitted {
        true => states
            .iter()
            .map(|state| admission(state, number))
            .collect(),
        false => states
            .iter()
            .map(|state| refusal(state, *admitted))
            .collect(),
    };
    Ok((0..*admitted.max(&(requests as u64))).map(heard).collect())
}

/// What a counter says to the request of this number, which it admitted.
fn admission([room, wait_micros, ..]: &[u64; 4], number: u64) -> Outcome {
    Outcome {
        is_refused: false,
        left: room.saturating_sub(number + 1),
        wait: Duration::from_micros(*wait_micros),
    }
}

/// What a counter says to the requests that were refused, by itself or by another.
fn refusal(state: &[u64; 4], admitted: u64) -> Outcome {
    let [room, wait_micros, is_refused, refused_wait_micros] = *state;
    let is_refused = is_refused == 1;
    Outcome {
        is_refused,
        left: match is_refused {
            true => 0,
            false => room.saturating_sub(admitted),
        },
        wait: Duration::from_micros(match is_refused {
            true => refused_wait_micros,
            false => wait_micros,
        }),
    }
}

fn number(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
