//! Starts rotations of keys whose cryptoperiod nears its end, if an operator has switched that on.

use std::time::Duration;

use cloakroom_core::cryptoperiods::{self, DUE};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::{Error, kek, start, store};
use crate::node::Node;

/// Who requests these rotations, in `key status`.
const SCHEDULE: &str = "cryptoperiods.automatic";
/// Rotations that one run starts. Nodes work on them one after the other.
const STARTED_MAX: i64 = 50;
/// Keys that nodes can replace without an operator, from top to bottom: a new key is wrapped by a new one.
const PURPOSES: [KeyPurpose; 3] = [KeyPurpose::TenantKek, KeyPurpose::Data, KeyPurpose::Reply];
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
            match result {
                Ok(_) => started += 1,
                // An operator, or a rotation whose old version is not destroyed yet.
                Err(Error::UnderWay { .. } | Error::Contended) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(started)
}
