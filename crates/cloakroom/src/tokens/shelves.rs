//! Containers as small numbers: rows and indexes repeat them, so paths are kept once.

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
pub struct Shelves {
    numbers: Cache<(i32, Container), i32>,
    containers: Cache<(i32, i32), Container>,
}

impl Default for Shelves {
    fn default() -> Self {
        Self {
            numbers: Cache::new(REMEMBERED_MAX),
            containers: Cache::new(REMEMBERED_MAX),
        }
    }
}

/// The number of a container, given out when it is first used.
pub(super) async fn number_of(
    vault: &Vault,
    tenant: TenantId,
    container: &Container,
) -> Result<i32, storage::Error> {
    let key = (tenant.number, container.clone());
    if let Some(number) = vault.shelves.numbers.get(&key).await {
        return Ok(number);
    }
    for _ in 0..ATTEMPTS {
        let known = store::find_container_number(&vault.db, tenant, container.as_str()).await?;
        if let Some(number) = known {
            vault.shelves.numbers.insert(key, number).await;
            return Ok(number);
        }
        // Loses against a container that takes the same number meanwhile, and tries again.
        store::insert_container(&vault.db, tenant, container.as_str()).await?;
    }
    Err(storage::Error::Unavailable(
        "no number became free for a container".into(),
    ))
}

/// The container behind a number that a row holds.
pub(super) async fn container_of(
    vault: &Vault,
    tenant: TenantId,
    number: i32,
) -> Result<Option<Container>, storage::Error> {
    let key = (tenant.number, number);
    if let Some(container) = vault.shelves.containers.get(&key).await {
        return Ok(Some(container));
    }
    let Some(path) = store::find_container_path(&vault.db, tenant, number).await? else {
        return Ok(None);
    };
    let container = Container::known(&path);
    vault
        .shelves
        .containers
        .insert(key, container.clone())
        .await;
    Ok(Some(container))
}
