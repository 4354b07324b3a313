//! The contact for security incidents of a tenant.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;

use super::find::record_read;
use super::{Error, store};
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
    if !store::update_security_contact(&transaction, caller, email).await? {
        transaction.roll_back().await;
        return Err(Error::NotFound);
    }
    let id = caller.tenant.uuid;
    let entry = Entry::new(caller, Operation::Update, EntityKind::Tenant, id);
    let response = template.render_pending(email)?;
    Ok(transaction.commit_with(&[entry], response).await?)
}
