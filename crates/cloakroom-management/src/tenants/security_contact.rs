//! The contact for security incidents of a tenant.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, AuditedTransaction, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;

use super::change::updated_event;
use super::find::{record_read, verified};
use super::{Error, Tenant, store};
use crate::members::Email;

/// Finds the contact's e-mail address.
pub async fn find_security_contact(
    vault: &Vault,
    caller: &Caller,
) -> Result<Option<String>, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let found = store::find_security_contact(&vault.db, caller.tenant).await?;
    let found = found.ok_or(Error::NotFound)?;
    record_read(vault, caller).await?;
    Ok(found)
}

/// Sets the contact's e-mail address.
pub async fn set_security_contact(
    vault: &Vault,
    caller: &Caller,
    email: &Email,
    template: &ResponseTemplate<'_, Email>,
) -> Result<(), Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let transaction = audit::begin(&vault.audit).await?;
    let changed = match change(vault, &transaction, caller, email).await {
        Ok(tenant) => tenant,
        Err(error) => {
            transaction.roll_back().await;
            return Err(error);
        }
    };
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Update, EntityKind::Tenant, id);
    let entry = entry.with_event(updated_event(&changed));
    let response = template.render_pending(email)?;
    Ok(transaction.commit_with(&[entry], response).await?)
}

/// Locks the tenant, so that the event shows it as this change leaves it.
async fn change(
    vault: &Vault,
    transaction: &AuditedTransaction<'_>,
    caller: &Caller,
    email: &Email,
) -> Result<Tenant, Error> {
    let locked = store::lock(transaction, caller.tenant).await?;
    let (stored, _) = locked.ok_or(Error::NotFound)?;
    let mut tenant = verified(vault.keys.control(), stored).ok_or(Error::Altered)?;
    let modified_at = store::update_security_contact(transaction, caller, email).await?;
    tenant.modified_at = Some(modified_at.ok_or(Error::NotFound)?);
    tenant.modified_by = Some(caller.application);
    Ok(tenant)
}
