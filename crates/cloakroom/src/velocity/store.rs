//! Every question to Redis: what all nodes count together, each in one script and by Redis's own clock.

use std::time::Duration;

use cloakroom_crypto::random_bytes;
use redis::pipe;

use super::sighting::{Group, Sighting};
use super::{admit as cards, notice as mistakes};
use crate::storage::{Away, Redis};

/// Counts one member in each set, all of them or none. Tells the milliseconds until the one that is too
/// many may come, or 0.
///
/// Sets are ordered by the time at which a member was last seen, hold as many as the limit says at most,
/// and go with their last member.
const ADMIT: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local coming, counts = {}, {}
for i, set in ipairs(KEYS) do
    local member = ARGV[i + 2]
    redis.call('ZREMRANGEBYSCORE', set, '-inf', now - window)
    if not redis.call('ZSCORE', set, member) and not coming[set .. member] then
        coming[set .. member] = true
        counts[set] = (counts[set] or redis.call('ZCARD', set)) + 1
        if counts[set] > limit then
            local oldest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
            return math.max((oldest[2] or now) + window - now, 1)
        end
    end
end
for i, set in ipairs(KEYS) do
    redis.call('ZADD', set, now, ARGV[i + 2])
    redis.call('PEXPIRE', set, window)
end
return 0";

/// Counts mistakes, and blocks their maker when there are too many. Tells the milliseconds for which it
/// is blocked, or 0.
const NOTICE: &str = "
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

/// Counts card numbers within their limit, unless the caller is blocked for its mistakes. Tells how long
/// to wait, if that is so.
pub(super) async fn admit(
    redis: &Redis,
    environment: &str,
    suspect: Option<Group>,
    counted: (&[Sighting], usize),
) -> Result<Option<Duration>, Away> {
    let (sightings, limit) = counted;
    let mut question = pipe();
    if let Some(suspect) = suspect {
        let block = name_of(environment, "block", &suspect);
        question.cmd("PTTL").arg(block);
    }
    question.cmd("EVAL").arg(ADMIT).arg(sightings.len());
    for sighting in sightings {
        question.arg(name_of(environment, "cards", &sighting.group));
    }
    question.arg(limit).arg(milliseconds(cards::WINDOW));
    for sighting in sightings {
        question.arg(&sighting.member);
    }
    let answers: Vec<i64> = redis.ask(&question).await?;
    // A block that is not there has a negative time left.
    Ok(wait(answers.into_iter().max().unwrap_or(0)))
}

/// Counts mistakes. Tells how long their maker is blocked, if it is.
pub(super) async fn notice(
    redis: &Redis,
    environment: &str,
    suspect: Group,
    count: usize,
) -> Result<Option<Duration>, Away> {
    let mut question = pipe();
    question
        .cmd("EVAL")
        .arg(NOTICE)
        .arg(2)
        .arg(name_of(environment, "mistakes", &suspect))
        .arg(name_of(environment, "block", &suspect))
        .arg(mistakes::FORGIVEN)
        .arg(milliseconds(mistakes::WINDOW))
        .arg(milliseconds(mistakes::BLOCK));
    for _ in 0..count {
        question.arg(&random_bytes::<8>());
    }
    let (left,): (i64,) = redis.ask(&question).await?;
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
