//! Both fingerprints of a value while the tenant's fingerprint key is replaced, so that a search by either finds its
//! tokens.
//!
//! A fingerprint cannot be computed from another one, and clients search by those that they have stored.

mod store;

use cloakroom_core::keys::{OtherFingerprint, TenantKeys};
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error};

use self::store::NewPairs;
pub(crate) use self::store::STATEMENTS;

/// Pairs that one statement deletes.
const DELETED_AT_ONCE: i64 = 10_000;

/// Stores the pairs of values, before a row with one of the fingerprints. Does nothing unless the key is being replaced.
pub(crate) async fn insert<'a>(
    db: &Db,
    tenant: TenantId,
    values: impl Iterator<Item = (Option<Fingerprint>, &'a [OtherFingerprint])>,
) -> Result<(), Error> {
    let mut pairs = NewPairs::default();
    for (active, others) in values {
        let Some(active) = active else { continue };
        for other in others {
            let [from_active, from_other] = other.pair_macs;
            pairs.push([active, other.fingerprint, from_active]);
            pairs.push([other.fingerprint, active, from_other]);
        }
    }
    store::insert(db, tenant, pairs).await
}

/// The fingerprint of the same value under the other version of the key. A pair that is not authentic is ignored.
pub(crate) async fn find_other(
    db: &Db,
    tenant: TenantId,
    keys: &TenantKeys,
    fingerprint: &Fingerprint,
) -> Result<Option<Fingerprint>, Error> {
    if !keys.has_other_fingerprints() {
        return Ok(None);
    }
    let stored = store::find(db, tenant, fingerprint).await?;
    let is_authentic = |(other, mac): &(Fingerprint, Fingerprint)| {
        keys.fingerprint_pair_mac([fingerprint, other]) == *mac
    };
    Ok(stored.filter(is_authentic).map(|(other, _)| other))
}

/// Deletes all pairs of a tenant, before the old key is destroyed.
pub async fn delete_all(db: &Db, tenant: TenantId) -> Result<(), Error> {
    while store::delete(db, tenant, DELETED_AT_ONCE).await? > 0 {}
    Ok(())
}
