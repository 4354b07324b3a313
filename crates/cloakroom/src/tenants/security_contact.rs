//! Whom to tell when something is wrong with a tenant's security.

use super::find::record_read;
use super::{Error, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::members::Email;
use crate::vault::Vault;

/// The address, if one was given.
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

/// Keeps another address.
pub async fn set_security_contact(
    vault: &Vault,
    caller: &Caller,
    email: &Email,
    reply: &Reply<'_, Email>,
) -> Result<(), Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let recorded = audit::begin(vault).await?;
    if !store::update_security_contact(&recorded, caller, email).await? {
        recorded.roll_back().await;
        return Err(Error::NotFound);
    }
    let id = caller.tenant.uuid;
    let entry = Entry::of(caller, Operation::Update, EntityKind::Tenant, id);
    let kept = reply.keep(email)?;
    Ok(recorded.commit_with(&[entry], kept).await?)
}
