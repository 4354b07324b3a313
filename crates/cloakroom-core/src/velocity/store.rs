//! Velocity counters shared by all nodes in Redis. Each operation is one script and uses Redis's
//! clock.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::random_bytes;
use cloakroom_platform::batching::{BatchHandler, BatchLimits, Batcher};
use cloakroom_platform::storage::{Redis, RedisUnavailable, Script};
use redis::pipe;

use super::allowance::INTERVALS;
use super::digests::{Group, GroupMember, NumberDigests};
use super::{admit as numbers, invalid_numbers};

/// SHA-1 of the script, as computed by Redis; a test compares them.
const ADMIT: Script = Script {
    text: include_str!("admit.lua"),
    sha1: "5bc9c8f4951b09a5c0ecc1b9f97c3aae1a2691a9",
};

/// Counts invalid numbers, and blocks the client if there are too many. Returns the milliseconds
/// for which it is blocked, or 0.
const COUNT_INVALID: &str = "
local left = redis.call('PTTL', KEYS[2])
if left > 0 then return left end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local forgiven, window, block = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
for i = 4, #ARGV do
    redis.call('ZADD', KEYS[1], now, ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], window)
if redis.call('ZCARD', KEYS[1]) <= forgiven then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], '', 'PX', block)
return block";

/// The numbers of one request.
#[derive(Clone)]
pub(super) struct VelocityCheck {
    pub(super) numbers: Vec<NumberDigests>,
    pub(super) limit: usize,
    /// The client whose invalid numbers may block the request.
    pub(super) client: Option<Group>,
}

/// Counts numbers through Redis, batching concurrent requests into one call.
pub(super) struct RedisVelocity {
    redis: Arc<Redis>,
    environment: String,
}

impl RedisVelocity {
    pub(super) fn batched(
        redis: &Arc<Redis>,
        environment: &str,
        queue_timeout: Duration,
    ) -> Batcher<Self> {
        let handler = Self {
            redis: redis.clone(),
            environment: environment.to_owned(),
        };
        Batcher::new(handler, BatchLimits::for_redis(100, queue_timeout))
    }
}

impl BatchHandler for RedisVelocity {
    type Item = VelocityCheck;
    /// How long to wait, if the numbers exceed the limit or the client is blocked.
    type Output = Result<Option<Duration>, RedisUnavailable>;

    const NAME: &'static str = "velocity";

    async fn process(&self, items: Vec<VelocityCheck>) -> Vec<Self::Output> {
        let interval = milliseconds(numbers::WINDOW) / INTERVALS as u64;
        let (mut names, mut arguments) = (Vec::new(), vec![interval, INTERVALS as u64]);
        for check in &items {
            let count = check.numbers.len() as u64;
            let is_public = u64::from(check.client.is_some());
            arguments.extend([check.limit as u64, count, is_public]);
            for number in &check.numbers {
                let name = |what, group| name_of(&self.environment, what, group);
                names.push(name("cards", &number.group));
                names.push(name("volume", &number.volume));
                names.push(name("volume", &number.part_volume));
                let GroupMember { part, digest } = number.member;
                arguments.extend([part, digest].map(u64::from_be_bytes));
            }
            let block = |client| name_of(&self.environment, "block", client);
            names.extend(check.client.as_ref().map(block));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match self.redis.run::<Vec<i64>>(ADMIT, &names, &arguments).await {
            Ok(waits) => waits.into_iter().map(|left| Ok(wait(left))).collect(),
            Err(RedisUnavailable) => items.iter().map(|_| Err(RedisUnavailable)).collect(),
        }
    }
}

/// Counts invalid numbers. Returns how long the client is blocked, if it is.
pub(super) async fn count_invalid(
    redis: &Redis,
    environment: &str,
    client: Group,
    count: usize,
) -> Result<Option<Duration>, RedisUnavailable> {
    let mut command = pipe();
    command
        .cmd("EVAL")
        .arg(COUNT_INVALID)
        .arg(2)
        .arg(name_of(environment, "mistakes", &client))
        .arg(name_of(environment, "block", &client))
        .arg(invalid_numbers::TOLERATED)
        .arg(milliseconds(invalid_numbers::WINDOW))
        .arg(milliseconds(invalid_numbers::BLOCK));
    for _ in 0..count {
        command.arg(&random_bytes::<8>());
    }
    let (left,): (i64,) = redis.query(&command).await?;
    Ok(wait(left))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn wait(left: i64) -> Option<Duration> {
    let left = u64::try_from(left).ok()?;
    (left > 0).then(|| Duration::from_millis(left))
}

fn name_of(environment: &str, what: &str, group: &Group) -> String {
    let group = hex::encode(group);
    format!("cloakroom:{environment}:velocity:{what}:{group}")
}
