//! Maintains the keys of this node: drops expired ones and keeps the others published.

use cloakroom_platform::clock::Uptime;
use cloakroom_platform::telemetry::catalog;

use super::SecurityCodes;
use super::publish::publish;

/// Drops expired keys, and publishes own keys that are missing in Redis.
///
/// Contacts Redis even if there is nothing to publish, which keeps a connection ready for requests.
pub async fn tend(codes: &SecurityCodes) {
    let keys = &codes.keys;
    let now = Uptime::now();
    keys.drop_expired(now);
    catalog::SECURITY_CODE_KEYS.set(keys.count() as f64);
    // The Redis client logs unavailability itself, once.
    let _ignored = publish(codes, &keys.own(now)).await;
}
