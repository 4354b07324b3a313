//! Containers as small numbers: rows and indexes repeat them, so paths are kept once.

use cloakroom_crypto::random_bytes;
use moka::future::Cache;

use super::store;
use crate::access::Container;
use crate::ids::TenantId;
use crate::storage;
use crate::vault::Vault;

const REMEMBERED_MAX: u64 = 100_000;
/// How many times to try when containers are first used at the same moment.
const ATTEMPTS: usize = 10;

/// What this node remembers of containers. They are never removed, so it never goes stale.
pub struct ContainerNumbers {
    numbers: Cache<(i32, Container), i32>,
    containers: Cache<(i32, i32), Container>,
}

impl Default for ContainerNumbers {
    fn default() -> Self {
        Self {
            numbers: Cache::new(REMEMBERED_MAX),
            containers: Cache::new(REMEMBERED_MAX),
        }
    }
}

/// The number of a container, given out when it is first used.
pub async fn number_of(
    vault: &Vault,
    tenant: TenantId,
    container: &Container,
) -> Result<i32, storage::Error> {
    let key = (tenant.number, container.clone());
    if let Some(number) = vault.container_numbers.numbers.get(&key).await {
        return Ok(number);
    }
    // Boxed, because almost nobody needs it.
    Box::pin(give_number(vault, tenant, key)).await
}

async fn give_number(
    vault: &Vault,
    tenant: TenantId,
    key: (i32, Container),
) -> Result<i32, storage::Error> {
    let container = key.1.clone();
    for attempt in 0..ATTEMPTS {
        let known = store::find_number(&vault.db, tenant, container.as_str()).await?;
        if let Some(number) = known {
            vault.container_numbers.numbers.insert(key, number).await;
            return Ok(number);
        }
        let gap = gap(attempt);
        match store::insert(&vault.db, tenant, container.as_str(), gap).await {
            Ok(()) => {}
            // The container may exist now or not; the token that was asked for does not.
            Err(storage::Error::OutcomeUnknown(statement)) => {
                return Err(storage::Error::TooSlow(statement));
            }
            Err(error) => return Err(error),
        }
    }
    Err(storage::Error::Unavailable(
        "no number became free for a container".into(),
    ))
}

/// How far above the highest number to try: at once first, and further apart after each collision
/// with others that make containers at the same moment.
fn gap(attempt: usize) -> i32 {
    let [random] = random_bytes::<1>();
    if attempt == 0 {
        1
    } else {
        1 + i32::from(random) % (8 << attempt.min(8))
    }
}

/// The container behind a number that a row holds.
pub async fn container_of(
    vault: &Vault,
    tenant: TenantId,
    number: i32,
) -> Result<Option<Container>, storage::Error> {
    let key = (tenant.number, number);
    if let Some(container) = vault.container_numbers.containers.get(&key).await {
        return Ok(Some(container));
    }
    // Boxed, because almost nobody needs it.
    let found = async {
        let Some(path) = store::find_path(&vault.db, tenant, number).await? else {
            return Ok(None);
        };
        let container = Container::known(&path);
        let known = &vault.container_numbers.containers;
        known.insert(key, container.clone()).await;
        Ok(Some(container))
    };
    Box::pin(found).await
}
