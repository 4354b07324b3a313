//! State shared by nodes: the counters in Redis and the table of nodes.
//!
//! Calls to Redis are batched: concurrent requests with the same counters are counted by one call,
//! which under load also reserves admissions for the next ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloakroom_platform::batching::{BatchHandler, BatchLimits, Batcher};
use cloakroom_platform::storage::{Db, Error, Params, Redis, RedisUnavailable, Script, statements};
use futures_util::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use super::counter::{Counter, Outcome};
use super::reserves::{Group, Reservation, Reserves};

/// How long a node counts as running after its last heartbeat.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the row of a stopped node is retained.
const NODE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// SHA-1 of the script, as computed by Redis; a test compares them.
const ADMIT: Script = Script {
    text: include_str!("admit.lua"),
    sha1: "b94bd2e325c625e2153894040adb4f98b9198352",
};

statements! {
    TELL_NODE: "rate_limits::tell_node" =
        "with told as (
            insert into node (node_id, version, started_at, seen_at, keys_generation)
            values ($1, $2, now(), now(), $5)
            on conflict (node_id) do update
            set seen_at = now(),
                keys_generation = excluded.keys_generation
        ), gone as (
            delete from node
            where seen_at < now() - make_interval(secs => $4)
        )
        select count(*), (select keys_generation from vault)
        from node
        where node_id <> $1
          and seen_at > now() - make_interval(secs => $3)";
    COUNT_NODES: "rate_limits::count_nodes" =
        "select count(*)
        from node
        where seen_at > now() - make_interval(secs => $1)";
}

/// Writes the heartbeat of this node, which acknowledges a generation of keys. Returns the number of other running nodes
/// and the newest generation.
pub(super) async fn write_heartbeat(
    db: &Db,
    node: Uuid,
    acknowledged: i64,
) -> Result<(u64, i64), Error> {
    let version = env!("CARGO_PKG_VERSION");
    let (timeout, retention) = (NODE_TIMEOUT.as_secs_f64(), NODE_RETENTION.as_secs_f64());
    let params: Params<'_> = &[&node, &version, &timeout, &retention, &acknowledged];
    let rows = db.write(&TELL_NODE, params).await?;
    let newest: Option<i64> = rows.first().and_then(|row| row.get(1));
    Ok((count(&rows), newest.unwrap_or(acknowledged)))
}

/// Counts the running nodes.
pub(super) async fn count_nodes(db: &Db) -> Result<u64, Error> {
    let rows = db
        .read(&COUNT_NODES, &[&NODE_TIMEOUT.as_secs_f64()])
        .await?;
    Ok(count(&rows))
}

fn count(rows: &[tokio_postgres::Row]) -> u64 {
    rows.first()
        .map_or(0, |row| row.get::<_, i64>(0))
        .unsigned_abs()
}

/// Counts requests through Redis.
pub(super) struct RedisCounter {
    redis: Arc<Redis>,
    reserves: Arc<Reserves>,
    nodes: Arc<AtomicU64>,
}

impl RedisCounter {
    pub(super) fn batched(
        redis: &Arc<Redis>,
        reserves: &Arc<Reserves>,
        nodes: &Arc<AtomicU64>,
        queue_timeout: Duration,
    ) -> Batcher<Self> {
        let (redis, reserves, nodes) = (redis.clone(), reserves.clone(), nodes.clone());
        let counter = Self {
            redis,
            reserves,
            nodes,
        };
        Batcher::new(counter, BatchLimits::for_redis(1_000, queue_timeout))
    }

    /// Counts requests of one group, and stores the admissions reserved for the next ones.
    async fn admit(&self, group: &Group, requests: usize) -> Vec<Vec<Outcome>> {
        let started_at = Instant::now();
        let nodes = self.nodes.load(Ordering::Relaxed);
        let reservation = self
            .reserves
            .plan(group, requests as u64, nodes, started_at);
        let replied = admit(&self.redis, &group.0, requests, reservation).await;
        let mut outcomes = replied.unwrap_or_default();
        if reservation != Reservation::NONE {
            let rest = outcomes.split_off(requests.min(outcomes.len()));
            self.reserves
                .insert(group, rest, started_at + reservation.ttl);
        }
        outcomes
    }
}

impl BatchHandler for RedisCounter {
    type Item = Group;
    /// `None` if Redis did not respond.
    type Output = Option<Vec<Outcome>>;

    const NAME: &'static str = "rate_limits";

    async fn process(&self, items: Vec<Group>) -> Vec<Self::Output> {
        let mut outputs: Vec<Self::Output> = items.iter().map(|_| None).collect();
        let groups = group_by_counters(&items);
        let calls = groups
            .iter()
            .map(|indexes| self.admit(&items[indexes[0]], indexes.len()));
        let counted = join_all(calls).await;
        for (indexes, outcomes) in groups.iter().zip(counted) {
            for (index, outcomes) in indexes.iter().zip(outcomes) {
                outputs[*index] = Some(outcomes);
            }
        }
        outputs
    }
}

/// Indexes of requests with the same counters, in the order of arrival.
fn group_by_counters(items: &[Group]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<&Group, usize> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let group = *known.entry(item).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(indexes) => indexes.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Admits requests of one group one after the other, each to all of the counters or to none, in one
/// round trip. Returns the outcomes of the requests, followed by those of reserved admissions.
async fn admit(
    redis: &Redis,
    counters: &[Counter],
    requests: usize,
    reservation: Reservation,
) -> Result<Vec<Vec<Outcome>>, RedisUnavailable> {
    let marks: Vec<String> = counters
        .iter()
        .map(|it| format!("{}:blocked", it.name))
        .collect();
    let mut keys = Vec::with_capacity(2 * counters.len());
    let mut arguments = Vec::with_capacity(3 + 3 * counters.len());
    let ttl = number(reservation.ttl.as_micros());
    arguments.extend([requests as u64, reservation.admissions, ttl]);
    for (counter, mark) in counters.iter().zip(&marks) {
        keys.extend([&*counter.name, &**mark]);
        arguments.extend([
            counter.limit,
            number(counter.row.window.as_micros()),
            number(counter.block().as_millis()),
        ]);
    }
    let reply: Vec<u64> = redis.run(ADMIT, &keys, &arguments).await?;
    let (admitted, states) = reply.split_first().ok_or(RedisUnavailable)?;
    let (states, rest) = states.as_chunks::<4>();
    if states.len() != counters.len() || !rest.is_empty() {
        return Err(RedisUnavailable);
    }
    let outcomes_of = |number: u64| match number < *admitted {
        true => states
            .iter()
            .map(|state| admission(state, number))
            .collect(),
        false => states
            .iter()
            .map(|state| rejection(state, *admitted))
            .collect(),
    };
    Ok((0..*admitted.max(&(requests as u64)))
        .map(outcomes_of)
        .collect())
}

/// Outcome of the admitted request with this number at one counter.
fn admission([capacity, wait_micros, ..]: &[u64; 4], number: u64) -> Outcome {
    Outcome {
        is_rejected: false,
        remaining: capacity.saturating_sub(number + 1),
        wait: Duration::from_micros(*wait_micros),
    }
}

/// Outcome of rejected requests at one counter, which may not be the one that rejected them.
fn rejection(state: &[u64; 4], admitted: u64) -> Outcome {
    let [capacity, wait_micros, is_rejected, rejected_wait_micros] = *state;
    let is_rejected = is_rejected == 1;
    Outcome {
        is_rejected,
        remaining: match is_rejected {
            true => 0,
            false => capacity.saturating_sub(admitted),
        },
        wait: Duration::from_micros(match is_rejected {
            true => rejected_wait_micros,
            false => wait_micros,
        }),
    }
}

fn number(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
