//! Starts rotations of keys whose cryptoperiod nears its end, if an operator has switched that on.

use std::time::Duration;

use cloakroom_core::cryptoperiods::{self, DUE};
use cloakroom_core::keys::VAULT;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::{Error, kek, start, store};
use crate::node::Node;

/// Who requests these rotations, in `key status`.
const SCHEDULE: &str = "cryptoperiods.automatic";
/// Rotations that one run starts. Nodes work on them one after the other.
const STARTED_MAX: i64 = 50;
/// Keys that nodes can replace without an operator, from top to bottom: a new key is wrapped by a new one. Not the
/// fingerprint key, because clients store fingerprints.
const PURPOSES: [KeyPurpose; 5] = [
    KeyPurpose::TenantKek,
    KeyPurpose::Data,
    KeyPurpose::Index,
    KeyPurpose::Reply,
    KeyPurpose::Request,
];
/// The same of the vault: no client stores anything under them.
const PURPOSES_OF_VAULT: [KeyPurpose; 3] = start::OF_VAULT;
/// Longer than a run, and shorter than the time to the next one.
const LEASE: Duration = Duration::from_secs(60);

/// Starts the rotation of keys that are past 80 % of their cryptoperiod, and returns how many. Old versions are destroyed
/// by an operator only: backups may need them.
pub async fn start_due(node: &Node, holder: Uuid) -> Result<u32, Error> {
    if !node.config.cryptoperiods.automatic
        || !storage::hold_lease(&node.db, "schedule_rotations", holder, LEASE).await?
    {
        return Ok(0);
    }
    let mut started = 0;
    for purpose in PURPOSES {
        let Some(period) = cryptoperiods::period(&node.config.cryptoperiods, purpose) else {
            continue;
        };
        let age = period.as_secs_f64() * DUE;
        for tenant in store::list_due(&node.db, purpose, age, STARTED_MAX).await? {
            let result = match purpose {
                KeyPurpose::TenantKek => kek::rotate_kek(node, tenant, SCHEDULE).await,
                _ => start::start(node, tenant, purpose, SCHEDULE).await,
            };
            started += count(result)?;
        }
    }
    for purpose in PURPOSES_OF_VAULT {
        let Some(period) = cryptoperiods::period(&node.config.cryptoperiods, purpose) else {
            continue;
        };
        if store::is_due(&node.db, purpose, period.as_secs_f64() * DUE).await? {
            started += count(start::start(node, VAULT, purpose, SCHEDULE).await)?;
        }
    }
    Ok(started)
}

/// 1 if a rotation was started.
fn count(started: Result<u32, Error>) -> Result<u32, Error> {
    match started {
        Ok(_) => Ok(1),
        // An operator, or a rotation whose old version is not destroyed yet.
        Err(Error::UnderWay { .. } | Error::Contended) => Ok(0),
        Err(error) => Err(error),
    }
}
