//! Every question to Redis: what all nodes count together, each in one script and by Redis's own clock.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::random_bytes;
use redis::pipe;

use super::sighting::{Group, Sighting};
use super::{admit as cards, notice as mistakes};
use crate::convoy::{Convoy, Load, Size};
use crate::storage::{Away, Redis, Script};

/// Its digest is the one that Redis computes; a test compares them.
const ADMIT: Script = Script {
    text: include_str!("admit.lua"),
    sha1: "c9a5f497f86367645b39f3eb6303137778f6160f",
};

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

/// The card numbers of one request.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) sightings: Vec<Sighting>,
    pub(super) limit: usize,
    /// Whose mistakes block it.
    pub(super) suspect: Option<Group>,
}

/// Counts card numbers through Redis: requests that come together are one question.
pub(super) struct Admitting {
    redis: Arc<Redis>,
    environment: String,
}

impl Admitting {
    pub(super) fn in_convoy(
        redis: &Arc<Redis>,
        environment: &str,
        patience: Duration,
    ) -> Convoy<Self> {
        let admitting = Self {
            redis: redis.clone(),
            environment: environment.to_owned(),
        };
        Convoy::new(admitting, Size::of_questions(100, patience))
    }
}

impl Load for Admitting {
    type Item = Asked;
    /// How long to wait, if the numbers are too many or their sender is blocked.
    type Answer = Result<Option<Duration>, Away>;

    const NAME: &'static str = "velocity";

    async fn carry(&self, items: Vec<Asked>) -> Vec<Self::Answer> {
        let (mut names, mut arguments) = (Vec::new(), vec![milliseconds(cards::WINDOW)]);
        for asked in &items {
            let count = asked.sightings.len() as u64;
            let is_watched = u64::from(asked.suspect.is_some());
            arguments.extend([asked.limit as u64, count, is_watched]);
            for Sighting { group, member } in &asked.sightings {
                names.push(name_of(&self.environment, "cards", group));
                arguments.push(u64::from_be_bytes(*member));
            }
            let block = |suspect| name_of(&self.environment, "block", suspect);
            names.extend(asked.suspect.as_ref().map(block));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match self.redis.run::<Vec<i64>>(ADMIT, &names, &arguments).await {
            Ok(waits) => waits.into_iter().map(|left| Ok(wait(left))).collect(),
            Err(Away) => items.iter().map(|_| Err(Away)).collect(),
        }
    }
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
