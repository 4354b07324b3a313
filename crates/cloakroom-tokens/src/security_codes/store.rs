//! SQL statements and Redis commands for security codes.

use std::time::Duration;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Redis, RedisUnavailable, Transaction, statements};
use redis::pipe;
use tokio_postgres::Row;
use uuid::Uuid;

use super::SealedCode;
use super::live_keys::KeyId;

/// A key as published to other nodes.
pub(super) struct PublishedKey<'a> {
    pub id: KeyId,
    pub wrapped: &'a [u8],
    /// Unix time by Redis's clock.
    pub expires_at: Duration,
}

/// A published key, and the time until it expires.
pub(super) struct FetchedKey {
    pub wrapped: Vec<u8>,
    pub left: Duration,
}

statements! {
    FIND: "security_codes::find" =
        "select key_id, sealed, expires_at
        from security_code
        where tenant_id = $1
          and token_id = $2
          and expires_at > now()";
    SWEEP: "security_codes::sweep" =
        "with expired as (
            select tenant_id, token_id
            from security_code
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        ), removed as (
            delete from security_code
            using expired
            where security_code.tenant_id = expired.tenant_id
              and security_code.token_id = expired.token_id
            returning security_code.tenant_id, security_code.token_id
        )
        select removed.tenant_id, removed.token_id, token.alias
        from removed
        left join token
          on token.tenant_id = removed.tenant_id
         and token.token_id = removed.token_id";
}

pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    token_id: &Uuid,
) -> Result<Option<SealedCode>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, token_id]).await?;
    Ok(row.map(|row| SealedCode {
        key_id: row.get(0),
        sealed: row.get(1),
        until: row.get(2),
    }))
}

/// Deletes up to `limit` expired rows, oldest first; skips rows locked by other sweeps. Returns the tenant and the id of
/// each token.
pub(super) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<(i32, String)>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    let token = |row: &Row| {
        let (key, alias): (Uuid, Option<String>) = (row.get(1), row.get(2));
        (row.get(0), alias.unwrap_or_else(|| key.to_string()))
    };
    Ok(rows.iter().map(token).collect())
}

/// The Unix time of Redis's clock.
pub(super) async fn clock(redis: &Redis) -> Result<Duration, RedisUnavailable> {
    let ((seconds, micros),): ((u64, u64),) = redis.query_in_background(pipe().cmd("TIME")).await?;
    Ok(Duration::from_secs(seconds) + Duration::from_micros(micros))
}

/// Publishes each key unless it is already published.
pub(super) async fn publish(
    redis: &Redis,
    environment: &str,
    keys: &[PublishedKey<'_>],
) -> Result<(), RedisUnavailable> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut commands = pipe();
    for key in keys {
        let expires_at_ms =
            u64::try_from(key.expires_at.as_millis()).map_err(|_| RedisUnavailable)?;
        commands
            .cmd("SET")
            .arg(redis_key(environment, key.id))
            .arg(key.wrapped)
            .arg("NX")
            .arg("PXAT")
            .arg(expires_at_ms)
            .ignore();
    }
    redis.query_in_background(&commands).await
}

/// Fetches a key and the time until it expires. A key without an expiry is ignored.
pub(super) async fn fetch(
    redis: &Redis,
    environment: &str,
    id: KeyId,
) -> Result<Option<FetchedKey>, RedisUnavailable> {
    let name = redis_key(environment, id);
    let mut commands = pipe();
    commands.cmd("GET").arg(&name).cmd("PTTL").arg(&name);
    let (wrapped, left_ms): (Option<Vec<u8>>, i64) = redis.query(&commands).await?;
    let left = u64::try_from(left_ms).ok().map(Duration::from_millis);
    Ok(wrapped
        .zip(left)
        .map(|(wrapped, left)| FetchedKey { wrapped, left }))
}

fn redis_key(environment: &str, id: KeyId) -> String {
    let id = hex::encode(id.as_bytes());
    format!("cloakroom:{environment}:security-code-key:{id}")
}
