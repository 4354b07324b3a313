//! Deletes the branding of a tenant.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::PendingResponse;
use cloakroom_core::vault::Vault;

use super::{Error, store};

/// Deletes the branding: pages have their default design again.
pub async fn delete(vault: &Vault, caller: &Caller) -> Result<(), Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Update, EntityKind::Tenant, id);
    let response = PendingResponse::default();
    let change = audit::begin_statement(&vault.audit, &[entry], response).await?;
    match store::delete(change, caller.tenant).await? {
        true => Ok(()),
        false => Err(Error::NotFound),
    }
}
