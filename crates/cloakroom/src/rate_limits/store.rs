//! What nodes share about limits: the counters in Redis, and the table of nodes.

use std::time::Duration;

use uuid::Uuid;

use super::counter::{Counter, Outcome};
use crate::storage::{Away, Db, Error, Redis, Script, statements};

/// How long a node counts as running after it was last seen.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// How long a row of a node that is gone is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Its digest is the one that Redis computes; a test compares them.
const ADMIT: Script = Script {
    text: include_str!("admit.lua"),
    sha1: "1e36579f84d5b5eeca1c2f08b3f1a48e46383e6e",
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

/// Admits a request to all of its counters, or to none, in one round trip.
pub(super) async fn admit(redis: &Redis, counters: &[Counter<'_>]) -> Result<Vec<Outcome>, Away> {
    let marks: Vec<String> = counters
        .iter()
        .map(|it| format!("{}:blocked", it.name))
        .collect();
    let mut keys = Vec::with_capacity(2 * counters.len());
    let mut arguments = Vec::with_capacity(3 * counters.len());
    for (counter, mark) in counters.iter().zip(&marks) {
        keys.extend([&*counter.name, &**mark]);
        arguments.extend([
            counter.limit,
            number(counter.row.window.as_micros()),
            number(counter.block().as_millis()),
        ]);
    }
    let answer: Vec<u64> = redis.run(ADMIT, &keys, &arguments).await?;
    let (outcomes, rest) = answer.as_chunks::<3>();
    if outcomes.len() != counters.len() || !rest.is_empty() {
        return Err(Away);
    }
    Ok(outcomes.iter().map(outcome).collect())
}

fn outcome([is_refused, left, wait_micros]: &[u64; 3]) -> Outcome {
    Outcome {
        is_refused: *is_refused == 1,
        left: *left,
        wait: Duration::from_micros(*wait_micros),
    }
}

fn number(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
