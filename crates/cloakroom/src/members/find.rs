//! Finding the owner, and single invitations.

use uuid::Uuid;

use super::{Error, Invitation, Member, store};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::vault::Vault;

/// The owner of the caller's tenant.
pub async fn find_owner(vault: &Vault, caller: &Caller) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let owner = owner_of(vault, caller.tenant).await?;
    let owner = owner.ok_or(Error::NotFound("owner"))?;
    let entry = Entry::of(caller, Operation::Read, EntityKind::Member, owner.id);
    vault.audit.note(vec![entry]).await?;
    Ok(owner)
}

/// The owner of a tenant, if it has one: tenants are made by command, and without one.
pub async fn owner_of(vault: &Vault, tenant: TenantId) -> Result<Option<Member>, Error> {
    Ok(store::find_owner(&vault.db, tenant).await?)
}

/// An invitation of the caller's tenant.
pub async fn find_invitation(
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationRead)?;
    let id = parse_id(id, "invitation")?;
    let found = store::find_invitation(&vault.db, caller.tenant, id).await?;
    let found = found.ok_or(Error::NotFound("invitation"))?;
    let entry = Entry::of(caller, Operation::Read, EntityKind::Invitation, id);
    vault.audit.note(vec![entry]).await?;
    Ok(found)
}

/// What is no UUID is nobody's id.
pub(super) fn parse_id(text: &str, what: &'static str) -> Result<Uuid, Error> {
    text.parse().map_err(|_| Error::NotFound(what))
}
