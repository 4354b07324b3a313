//! Maps container paths to numbers, which are cached and assigned on first use.

use cloakroom_core::access::Container;
use cloakroom_crypto::random_bytes;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db};
use moka::future::Cache;

use super::store;

const CACHED_MAX: u64 = 100_000;
/// Attempts when several containers are first used concurrently.
const ATTEMPTS: usize = 10;

/// This node's cache of containers. Containers are never deleted, so it never becomes stale.
pub struct ContainerNumbers {
    db: Db,
    numbers: Cache<(i32, Container), i32>,
    containers: Cache<(i32, i32), Container>,
}

impl ContainerNumbers {
    pub fn new(db: &Db) -> Self {
        Self {
            db: db.clone(),
            numbers: Cache::new(CACHED_MAX),
            containers: Cache::new(CACHED_MAX),
        }
    }
}

/// The number of a container, assigned when the container is first used.
pub async fn number_of(
    numbers: &ContainerNumbers,
    tenant: TenantId,
    container: &Container,
) -> Result<i32, storage::Error> {
    let key = (tenant.number, container.clone());
    if let Some(number) = numbers.numbers.get(&key).await {
        return Ok(number);
    }
    // Boxed to keep the common path's future small.
    Box::pin(assign_number(numbers, tenant, container)).await
}

async fn assign_number(
    numbers: &ContainerNumbers,
    tenant: TenantId,
    container: &Container,
) -> Result<i32, storage::Error> {
    for attempt in 0..ATTEMPTS {
        let known = store::find_number(&numbers.db, tenant, container.as_str()).await?;
        if let Some(number) = known {
            let key = (tenant.number, container.clone());
            numbers.numbers.insert(key, number).await;
            return Ok(number);
        }
        let gap = gap(attempt);
        match store::insert(&numbers.db, tenant, container.as_str(), gap).await {
            Ok(()) => {}
            // The container may or may not exist now; the token was not written, so the outcome is known.
            Err(storage::Error::OutcomeUnknown(statement)) => {
                return Err(storage::Error::TooSlow(statement));
            }
            Err(error) => return Err(error),
        }
    }
    Err(storage::Error::Unavailable(
        "no container number could be assigned".into(),
    ))
}

/// The distance above the highest number: 1 at first, and a growing random distance after each collision with a
/// concurrent insert.
fn gap(attempt: usize) -> i32 {
    let [random] = random_bytes::<1>();
    if attempt == 0 {
        1
    } else {
        1 + i32::from(random) % (8 << attempt.min(8))
    }
}

/// The container with a number.
pub async fn container_of(
    numbers: &ContainerNumbers,
    tenant: TenantId,
    number: i32,
) -> Result<Option<Container>, storage::Error> {
    let key = (tenant.number, number);
    if let Some(container) = numbers.containers.get(&key).await {
        return Ok(Some(container));
    }
    // Boxed to keep the common path's future small.
    let found = async {
        let Some(path) = store::find_path(&numbers.db, tenant, number).await? else {
            return Ok(None);
        };
        let container = Container::known(&path);
        let known = &numbers.containers;
        known.insert(key, container.clone()).await;
        Ok(Some(container))
    };
    Box::pin(found).await
}
