//! Sealing a code under the key of the current epoch, which other nodes can get from then on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use uuid::Uuid;

use super::life::Life;
use super::live_keys::{LiveKey, Place};
use super::publish::publish;
use super::{WAIT_MAX, count};
use crate::clock::Uptime;
use crate::ids::TenantId;
use crate::keys;
use crate::vault::Vault;

/// A code that is ready to be kept, until `retention` after the database's `now()`.
#[derive(Clone, Debug)]
pub struct SealedCode {
    pub key_id: Vec<u8>,
    pub sealed: Vec<u8>,
    pub retention: Duration,
}

/// Seals the code of a token, to be kept for a time. It opens for this tenant and this token only.
///
/// Goes on while Redis is away: this node can open the code, and others once Redis is back.
pub async fn seal(
    vault: &Vault,
    tenant: TenantId,
    token_id: &Uuid,
    code: (&str, Duration),
) -> Result<SealedCode, keys::Error> {
    let (code, retention) = code;
    let key = sealing_key(vault, retention).await;
    let place = Place {
        environment: vault.keys.environment(),
        tenant,
        token_id,
    };
    let sealed = key.seal(&place, code)?;
    count("sealed");
    Ok(SealedCode {
        key_id: key.id.as_bytes().to_vec(),
        sealed,
        retention,
    })
}

async fn sealing_key(vault: &Vault, retention: Duration) -> Arc<LiveKey> {
    let codes = &vault.security_codes;
    if let Some(key) = codes.keys.sealing(retention, Uptime::now()) {
        return key;
    }
    let _making = codes.making.lock().await;
    if let Some(key) = codes.keys.sealing(retention, Uptime::now()) {
        return key;
    }
    let epoch = vault.config.security_codes.epoch;
    let life = Life::of_new_key(Uptime::now(), epoch, retention);
    let key = Arc::new(LiveKey::generate(life));
    // Before its first use: whoever hears of a token may ask another node for its code at once. If
    // Redis is away, the job that tends the keys publishes it later.
    let _later = timeout(WAIT_MAX, publish(vault, std::slice::from_ref(&key))).await;
    codes.keys.start_sealing(retention, key.clone());
    key
}
