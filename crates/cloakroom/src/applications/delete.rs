//! Deleting an application with its keys.

use uuid::Uuid;

use super::find::uuid;
use super::{Asker, Error, settle_and_forget, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Operation};
use crate::idempotency::Reply;
use crate::ids::TenantId;
use crate::storage::Transaction;
use crate::vault::Vault;

/// Deletes an application and its keys, together. What it created stays.
///
/// The row is not checked first: taking rights away is safe, whoever wrote them.
pub async fn delete(vault: &Vault, asker: Asker<'_>, id: &str) -> Result<(), Error> {
    asker.require(Permission::ApplicationDelete)?;
    let id = uuid(id)?;
    let recorded = audit::begin(vault).await?;
    let deleted = remove(&recorded, asker.tenant(), id).await;
    let entries = |keys: &Vec<Uuid>| {
        let keys = keys.iter().map(|key| (EntityKind::ApplicationKey, *key));
        let gone = keys.chain([(EntityKind::Application, id)]);
        gone.map(|(entity, id)| asker.entry(Operation::Delete, entity, id))
            .collect()
    };
    let deleted = settle_and_forget(vault, recorded, deleted, entries, &Reply::none()).await;
    deleted.map(drop)
}

/// Keys go after the application, which whoever makes one has to lock: none can appear behind this.
async fn remove(transaction: &Transaction, tenant: TenantId, id: Uuid) -> Result<Vec<Uuid>, Error> {
    if !store::delete(transaction, tenant, id).await? {
        return Err(Error::NotFound("application"));
    }
    Ok(store::delete_keys(transaction, tenant, id).await?)
}
