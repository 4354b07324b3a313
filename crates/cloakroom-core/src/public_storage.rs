//! Bounds what public applications store: all visitors of a page have its key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloakroom_platform::api::ApiError;
use cloakroom_platform::clock::Uptime;
use cloakroom_platform::storage::{Redis, RedisUnavailable};
use redis::pipe;
use uuid::Uuid;

use crate::access::{ApplicationKind, RateLimit};
use crate::caller::Caller;
use crate::vault::Vault;

/// The body of a request. A card with all of its metadata is far smaller.
const BODY_MAX: usize = 64 * 1024;
/// Bodies up to this size are not counted. Otherwise, whoever used up the bound would stop the cards of others.
const UNCOUNTED_MAX: usize = 4 * 1024;
/// What the public applications of a tenant store in larger bodies within a day: 16,384 of the largest.
const BYTES_PER_DAY: u64 = 1024 * 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Counts the bytes of a tenant, unless there would be too many. Returns the milliseconds until the day ends, or 0.
const COUNT: &str = "
local left = redis.call('PTTL', KEYS[1])
local bytes = tonumber(ARGV[1]) + tonumber(redis.call('GET', KEYS[1]) or 0)
if bytes > tonumber(ARGV[2]) then return left end
redis.call('SET', KEYS[1], bytes, 'PX', left > 0 and left or ARGV[3])
return 0";

/// The bytes that public applications stored recently.
pub struct PublicStorage {
    redis: Option<Arc<Redis>>,
    environment: String,
    is_enabled: bool,
    /// By tenant. Decides without Redis, or while it is unavailable.
    days: Mutex<HashMap<Uuid, Day>>,
}

struct Day {
    ends_at: Uptime,
    bytes: u64,
}

impl PublicStorage {
    pub fn new(vault: &Vault) -> Self {
        Self {
            redis: vault.redis.clone(),
            environment: vault.config.vault.environment.as_str().to_owned(),
            is_enabled: vault.config.limits.enabled,
            days: Mutex::default(),
        }
    }

    /// Rejects a request of a public application whose body is too large, and large bodies after many others. The
    /// tenant's quota `rate_limit` multiplies how many there may be.
    pub async fn admit(&self, caller: &Caller, bytes: usize) -> Result<(), ApiError> {
        if caller.application_kind != ApplicationKind::Public || bytes <= UNCOUNTED_MAX {
            return Ok(());
        }
        if BODY_MAX < bytes {
            return Err(ApiError::body_too_large_for_public_key(BODY_MAX));
        }
        if !self.is_enabled || caller.quotas.rate_limit == RateLimit::Unlimited {
            return Ok(());
        }
        let limit = caller.quotas.rate_limit.applied_to(BYTES_PER_DAY);
        let tenant = caller.tenant.uuid;
        let shared = match &self.redis {
            Some(redis) => self
                .count_shared(redis, tenant, bytes as u64, limit)
                .await
                .ok(),
            None => None,
        };
        let wait = shared.unwrap_or_else(|| {
            let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
            count(&mut days, tenant, bytes as u64, limit)
        });
        match wait {
            None => Ok(()),
            Some(retry_after) => Err(ApiError::too_many(
                "rate_limited",
                "The public applications of this tenant sent too many large values within a day. Send this one with a \
                 private key, or have the operator raise the tenant's quota `rate_limit`.",
                retry_after,
            )),
        }
    }

    async fn count_shared(
        &self,
        redis: &Redis,
        tenant: Uuid,
        bytes: u64,
        limit: u64,
    ) -> Result<Option<Duration>, RedisUnavailable> {
        let name = format!("cloakroom:{}:public-storage:{tenant}", self.environment);
        let mut command = pipe();
        command.cmd("EVAL").arg(COUNT).arg(1).arg(name);
        command.arg(bytes).arg(limit).arg(DAY.as_millis() as u64);
        let (left,): (i64,) = redis.query(&command).await?;
        let left = u64::try_from(left).unwrap_or_default();
        Ok((left > 0).then(|| Duration::from_millis(left)))
    }
}

/// Counts the bytes in memory; returns how long to wait if there would be too many.
fn count(days: &mut HashMap<Uuid, Day>, tenant: Uuid, bytes: u64, limit: u64) -> Option<Duration> {
    let now = Uptime::now();
    days.retain(|_, day| now < day.ends_at);
    let day = days.entry(tenant).or_insert(Day {
        ends_at: now + DAY,
        bytes: 0,
    });
    if limit < day.bytes + bytes {
        return Some(now.until(day.ends_at));
    }
    day.bytes += bytes;
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_bounded_separately_until_the_day_ends() {
        let (mut days, tenant, other) = (HashMap::new(), Uuid::nil(), Uuid::max());

        assert_eq!(count(&mut days, tenant, 60, 100), None);
        let wait = count(&mut days, tenant, 41, 100).unwrap();
        assert!(wait <= DAY && DAY < wait + Duration::from_secs(60));
        assert_eq!(count(&mut days, tenant, 40, 100), None);
        assert_eq!(count(&mut days, other, 60, 100), None);
        days.get_mut(&tenant).unwrap().ends_at = Uptime::now();
        assert_eq!(count(&mut days, tenant, 100, 100), None);
    }
}
