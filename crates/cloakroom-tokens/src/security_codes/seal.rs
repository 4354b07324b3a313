//! Seals security codes under the key of the current epoch, which is published to other nodes.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::keys;
use cloakroom_platform::clock::Uptime;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use tokio::time::timeout;
use uuid::Uuid;

use super::lifetime::Lifetime;
use super::live_keys::{CodeContext, LiveKey};
use super::publish::publish;
use super::{REDIS_TIMEOUT, SecurityCodes, count};

/// A sealed code, as it is stored. It is bound to its expiry.
#[derive(Clone, Debug)]
pub struct SealedCode {
    pub key_id: Vec<u8>,
    pub sealed: Vec<u8>,
    /// When it expires, by the database's clock.
    pub until: Timestamp,
}

/// How long a code is stored, from a time of the database's clock.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub from: Timestamp,
    pub duration: Duration,
}

impl Retention {
    fn end(self) -> Timestamp {
        self.from
            .checked_add(self.duration)
            .unwrap_or(Timestamp::MAX)
    }
}

/// Seals the code of a token for a retention. It opens for this tenant and this token only.
///
/// Works without Redis: this node can open the code, and other nodes can once Redis is available again.
pub async fn seal(
    codes: &SecurityCodes,
    tenant: TenantId,
    token_id: &Uuid,
    code: &str,
    retention: Retention,
) -> Result<SealedCode, keys::Error> {
    let until = retention.end();
    let key = sealing_key(codes, retention).await;
    let context = CodeContext {
        environment: codes.vault.keys.environment(),
        tenant,
        token_id,
        until,
    };
    let sealed = key.seal(&context, code)?;
    count("sealed");
    Ok(SealedCode {
        key_id: key.id.as_bytes().to_vec(),
        sealed,
        until,
    })
}

async fn sealing_key(codes: &SecurityCodes, retention: Retention) -> Arc<LiveKey> {
    let duration = retention.duration;
    if let Some(key) = codes.keys.sealing(duration, Uptime::now()) {
        return key;
    }
    let _guard = codes.create_lock.lock().await;
    if let Some(key) = codes.keys.sealing(duration, Uptime::now()) {
        return key;
    }
    let epoch = codes.vault.config.security_codes.epoch;
    let lifetime = Lifetime::for_new_key(Uptime::now(), epoch, duration);
    let ends_at = retention.end().checked_add(epoch);
    let key = Arc::new(LiveKey::generate(
        lifetime,
        ends_at.unwrap_or(Timestamp::MAX),
    ));
    // Published before its first use, because clients may read the code through another node at once. If Redis is
    // unavailable, the maintenance job publishes it later.
    let _ignored = timeout(REDIS_TIMEOUT, publish(codes, std::slice::from_ref(&key))).await;
    codes.keys.start_sealing(duration, key.clone());
    key
}
