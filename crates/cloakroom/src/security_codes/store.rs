//! Every SQL and Redis statement about security codes.

use std::time::Duration;

use redis::pipe;
use uuid::Uuid;

use super::live_keys::KeyId;
use crate::ids::TenantId;
use crate::storage::{Away, Db, Error, Redis, statements};

/// A code as it is kept.
pub(super) struct Kept {
    pub key_id: Vec<u8>,
    pub sealed: Vec<u8>,
}

/// A key as other nodes find it.
pub(super) struct Published<'a> {
    pub id: KeyId,
    pub wrapped: &'a [u8],
    /// By the clock of Redis, since 1970.
    pub expires_at: Duration,
}

/// A key as it was found, and how long it has to live.
pub(super) struct Fetched {
    pub wrapped: Vec<u8>,
    pub left: Duration,
}

statements! {
    FIND: "security_codes::find" =
        "select key_id, sealed
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
            returning 1
        )
        select count(*) from removed";
}

pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    token_id: &Uuid,
) -> Result<Option<Kept>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, token_id]).await?;
    Ok(row.map(|row| Kept {
        key_id: row.get(0),
        sealed: row.get(1),
    }))
}

/// Removes the oldest expired rows that nobody else is removing, `limit` at most.
pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    let rows = db.write(&SWEEP, &[&limit]).await?;
    let removed = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    Ok(removed.unsigned_abs())
}

/// What time it is for Redis, since 1970.
pub(super) async fn clock(redis: &Redis) -> Result<Duration, Away> {
    let ((seconds, micros),): ((u64, u64),) = redis.ask_patiently(pipe().cmd("TIME")).await?;
    Ok(Duration::from_secs(seconds) + Duration::from_micros(micros))
}

/// Puts each key in its place unless one is there.
pub(super) async fn publish(
    redis: &Redis,
    environment: &str,
    keys: &[Published<'_>],
) -> Result<(), Away> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut commands = pipe();
    for key in keys {
        let expires_at_ms = u64::try_from(key.expires_at.as_millis()).map_err(|_| Away)?;
        commands
            .cmd("SET")
            .arg(name_of(environment, key.id))
            .arg(key.wrapped)
            .arg("NX")
            .arg("PXAT")
            .arg(expires_at_ms)
            .ignore();
    }
    redis.ask_patiently(&commands).await
}

/// Finds a key and what is left of its life. One without an end is not ours.
pub(super) async fn fetch(
    redis: &Redis,
    environment: &str,
    id: KeyId,
) -> Result<Option<Fetched>, Away> {
    let name = name_of(environment, id);
    let mut commands = pipe();
    commands.cmd("GET").arg(&name).cmd("PTTL").arg(&name);
    let (wrapped, left_ms): (Option<Vec<u8>>, i64) = redis.ask(&commands).await?;
    let left = u64::try_from(left_ms).ok().map(Duration::from_millis);
    Ok(wrapped
        .zip(left)
        .map(|(wrapped, left)| Fetched { wrapped, left }))
}

fn name_of(environment: &str, id: KeyId) -> String {
    let id = hex::encode(id.as_bytes());
    format!("cloakroom:{environment}:security-code-key:{id}")
}
