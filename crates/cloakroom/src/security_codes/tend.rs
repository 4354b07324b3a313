//! Tending the keys of this node: the dead are forgotten, the living stay published.

use super::publish::publish;
use crate::clock::Uptime;
use crate::vault::Vault;

/// Forgets keys whose time has come, and publishes own keys that Redis has lost or never got.
///
/// Asks Redis even when there is nothing to publish, so that requests find a connection ready.
pub async fn tend(vault: &Vault) {
    let keys = &vault.security_codes.keys;
    let now = Uptime::now();
    keys.forget_ended(now);
    metrics::gauge!("security_code_keys_live").set(keys.count() as f64);
    // Redis tells of its own absence, once.
    let _next_time = publish(vault, &keys.own(now)).await;
}
